// Package cluster runs a cell as separate processes on loopback, to be killed,
// paused and restarted by tests and by the demo.
//
// It owns processes, ports, directories and logs; what a test does with a cell
// it does through the client library or the command itself.
//
// C1. Every process is stopped by its pid when the cluster closes, and by the
// kernel when the process that started it dies (parent-death signal). That signal
// hangs on the thread that started the child, so one goroutine, locked to its
// thread for the cluster's life, starts them all (spawn.go).
//
// C2. A process keeps its addresses and directories over restarts.
//
// C3. Nobody sleeps for a state: waits poll the cell's status until it is reached
// or a deadline passes.
//
// C4. A process that ends by itself, panics or reports a data race makes the
// cluster's Close fail, with the end of its log.
package cluster
