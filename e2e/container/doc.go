// Package container runs a cell as containers on private networks of their own,
// to be hurt by package fault and by tests.
//
// It owns an engine's containers, networks, volumes and images whose names begin
// with strake-e2e-PID; whatever a dead process left behind under such a name is
// removed by the next. Nothing is published to the host and no network leads out.
//
// N1. A node keeps its name, its volume and its command line over restarts,
// upgrades and changes of address; its container and its addresses may change.
//
// N2. Nobody sleeps for a state: waits poll until it is reached or a deadline
// passes.
//
// N3. The timeline has a line for whatever was done to a cell, with the seconds
// since it began. A test that fails shows it, the seed and the end of each log.
//
// A Cell's methods are for one goroutine, the test's.
package container
