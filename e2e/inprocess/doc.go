// Package inprocess runs a whole cell in the test's own process, over loopback:
// metadata servers and chunk servers with their disks in memory, each to be
// killed, paused and restarted.
//
// It owns servers, disks and gates; what a test does with a cell it does through
// the client library. Chunk servers are reached through a gate each, whose address
// stays over restarts: a closed gate refuses, a paused one takes connections and
// lets nothing through, as a stopped process does. A server that is killed leaves
// what it wrote; one whose power is cut leaves what it synced, and of the rest
// what chance decides.
//
// Nobody sleeps for a state: Eventually looks until it is reached or patience
// ends. Concurrency: a Cell's methods are safe for concurrent use, but for two on
// the same server.
package inprocess
