// Package meta is the metadata server: one process of a cell's metadata service.
//
// It owns how a process becomes a member (form.go decides, join.go looks round
// and carries out) and how it starts and stops. The parts below it each have one
// duty: state is the machine, placement and reconcile decide, replica keeps the
// machine the same everywhere, server is the API and the leader's controllers.
//
// # One port
//
// A server has one address for everything: mux sorts raft's connections from
// gRPC's by their first byte. It is known to all by the address that it
// advertises, a name that stays and is resolved at each dial. The same command
// starts each server: `strake meta serve --listen A --peers A,B,C --dir D`.
//
// # How a server becomes a member
//
//	state on disk                 it starts and goes on; the list of peers is not used
//	no state, marker              wiped: it never forms; it starts when the cell lists it without a vote
//	no state, others know a cell  the same: it may have been a member on another disk
//	no state, all empty, same list   the first in order makes the group; the others start and wait
//	anything else                 it waits, and says for what
//
// The first leader proposes FormCell with a random cell id.
//
// # Goroutines
//
// The gRPC server, join (until the replica started), and those of mux and
// replica. A failure that ends the server (see replica, I1 and I5) arrives in
// the channel of Fatal; Run returns it and the process exits, for only main does.
// Close ends them in order: join, controllers, leadership, raft, gRPC, port.
package meta
