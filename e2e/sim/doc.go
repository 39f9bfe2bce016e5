// Package sim is the whole cell under one seed: clients, chunk servers, the
// metadata service, the network, disks and clocks in one loop and in virtual
// time. The same seed gives the same history, event for event.
//
// What is real: chunkd/store on vfs.Mem (with Pebble in some seeds, e2e/sim/ordered
// in the others), the janitor's rebuild, meta/state, meta/placement, meta/reconcile
// and the rule for leftovers, and on the client's side the cores write, read,
// recovery and extent under the single-threaded shell client/simclient. What stands
// in for something: an ordered log for Raft (its library can't be seeded), calls for
// sockets, and small copies of the metadata server's soft state (sessions, move
// budget), which is bound to wall clocks. docs/reliability.md says what that leaves out.
//
// # A seed
//
// Two volumes, seven to nine chunk servers, three metadata states that apply the
// log with lag, three clients with 100 operations and more each, and at least
// six faults. In some seeds the clients take turns on single blocks (linear.go),
// in some an administrator makes snapshots, clones and rollbacks (admin.go), in some
// writers clean what they overwrite, and janitors what nobody writes.
// Then the network heals, what is down comes back, and the cell must
// converge. Every decision comes from the seed.
//
// # Checkers
//
// Each property has a file: durable.go (P1), prefix.go (P2), wrong.go (P3),
// onewriter.go (P4), linear.go (single blocks), frozen.go (seals), sane.go
// (placement, redundancy, rebuild never lowers it and ends), immutable.go (P5),
// garbage.go (cleaning gives back what is overwritten, in a bounded number of rounds),
// space.go (what is deleted is gone). They are fed by history.go: what clients
// submitted, what the cores claimed, what the log decided.
//
// A block's content tells volume, block and version. The history keeps for each
// block the versions with the seq and epoch under which they were cut. The log
// says where each epoch was cut off. So what any reader must see follows exactly,
// and nothing is inferred from what is read.
//
// # How to read a failing seed
//
// The failure prints the seed, the property that broke, the last events, and the
// line that replays it, `make sim SEED=n`; with -trace all events are printed.
// An event is its virtual time, what happened, and up to four numbers. Read it
// from the end: the checker's complaint names volume, epoch and seq; look for the
// last `cut`, `flushed` and `epoch closed` of that volume, then for the fault
// that stands before them. A seed that failed once stands in found_test.go for
// ever.
//
// # What makes it deterministic
//
// Events are ordered by time and a tie-breaker from the seed. No result depends
// on the order of a map. The store has goroutines of its own (Pebble's, and the
// mover of its log): no answer of it depends on their pace, each call runs to its
// end at its event, and what a power cut leaves is drawn from the seed for the
// files that only calls write to. Pebble's files live in a second Mem, so that
// its background work can't shift these draws.
package sim
