package replica

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// Options are what a Replica needs. All fields but Lead, Logger and Timing must
// be set.
type Options struct {
	ID       string // the address that this server advertises, its name in raft
	FS       vfs.FS // its own directory
	Machine  Machine
	Listener net.Listener // of raft's connections
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	// Lead runs while this server leads: it begins when all that earlier leaders
	// acknowledged was applied, and must return soon after ctx ends.
	Lead func(ctx context.Context, term uint64)
	// Fatal is told, once, that this server can't go on: its log failed, hangs
	// or is damaged, a command can't be applied, or it was removed from the
	// cell. The process must end. It is called on a goroutine of its own.
	Fatal  func(error)
	Logger *slog.Logger
	Timing Timing

	wrapStore func(store) store // for tests: puts faults below the guard
}

// Replica is one member of the group. Safe for concurrent use.
type Replica struct {
	id   raft.ServerID
	opts Options
	log  *slog.Logger
	disk *disk
	fsm  *fsm

	peers     *peers
	reads     rounds
	proposals chan struct{} // a place for each proposal under way
	readyTerm atomic.Uint64 // the term in which this server leads and has caught up; else 0

	mu      sync.Mutex
	raft    *raft.Raft     // guarded by mu until Start; nil before
	net     *transport     // guarded by mu until Start
	closing bool           // guarded by mu
	closed  chan struct{}  // closed with closing
	wg      sync.WaitGroup // every goroutine but those asked; Add under mu while not closing
	asked   sync.WaitGroup // goroutines to which raft owes an answer; Add under mu while not closing
}

// Open opens a member's directory and checks everything in it. It takes part in
// nothing before Start. Errors: Busy when another process has the directory;
// Corrupt when the log or the newest snapshot is damaged, with a hint how to
// rejoin; InvalidArgument when it is another member's.
func Open(opts Options) (*Replica, error) {
	opts.Timing = opts.Timing.withDefaults()
	opts.Logger = loggerOr(opts.Logger)
	r := &Replica{
		id: raft.ServerID(opts.ID), log: opts.Logger, peers: newPeers(),
		proposals: make(chan struct{}, maxProposals), closed: make(chan struct{}),
	}
	fatal := opts.Fatal
	opts.Fatal = func(err error) {
		r.log.Error("server ends", "err", err)
		fatal(err)
	}
	r.opts = opts
	d, err := openDisk(opts)
	if err != nil {
		return nil, err
	}
	r.disk = d
	r.fsm = &fsm{machine: opts.Machine, fail: d.guard.fail}
	return r, nil
}

// HasState tells whether the directory held raft state when it was opened.
func (r *Replica) HasState() bool { return r.disk.state }

// Wiped tells whether the directory was a member's and lost its state. Such a
// server may start only after it was removed from the cell and added again: it
// no longer knows what it voted for and what it acknowledged.
func (r *Replica) Wiped() bool { return r.disk.lost }

// Empty tells whether this directory never held raft state, up to now.
func (r *Replica) Empty() bool {
	born, _ := r.disk.guard.history()
	return !born
}

// Formed tells whether a command was ever seen here: then the group may have
// acknowledged something.
func (r *Replica) Formed() bool {
	_, formed := r.disk.guard.history()
	return formed
}

// Start joins the group: with the state on disk, or empty, to be filled by the
// leader. With members it first makes the group of them; for that the directory
// must be empty.
func (r *Replica) Start(members []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return errs.New(errs.Closed, "start", "the server is stopping")
	}
	config := r.opts.Timing.config(r.id, r.log)
	if len(members) > 0 {
		if r.disk.state || r.disk.lost {
			return errs.New(errs.Conflict, "form the cell", "this server's directory is not empty")
		}
		err := raft.BootstrapCluster(config, r.disk.guard, r.disk.guard, r.disk.snaps, nil, configurationOf(members))
		if err != nil {
			return errs.As(err, errs.Internal, "form the cell")
		}
	}
	r.net = &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: &stream{Listener: r.opts.Listener, id: r.opts.ID, dial: r.opts.Dial},
			Logger: config.Logger, MaxPool: connsPerPeer, Timeout: r.opts.Timing.RPC, MaxRPCsInFlight: rpcsInFlight,
		}),
		peers: r.peers,
	}
	rf, err := r.newRaft(config)
	if err != nil {
		r.net.Close()
		return unreadable(errors.Join(r.fsm.refused(), err), errs.Corrupt, "start from the log")
	}
	r.disk.guard.running.Store(true)
	r.fsm.running.Store(true)
	r.raft = rf
	r.wg.Go(r.watch)
	r.wg.Go(r.age)
	return nil
}

// newRaft makes raft. It panics when it can't read an entry of the log; the error that
// the guard saw says more.
func (r *Replica) newRaft(config *raft.Config) (rf *raft.Raft, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err = r.disk.guard.failure(); err == nil {
			panic(p)
		}
	}()
	return raft.NewRaft(config, r.fsm, r.disk.guard, r.disk.guard, r.disk.snaps, r.net)
}

func configurationOf(members []string) raft.Configuration {
	var c raft.Configuration
	for _, m := range members {
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(m), Address: raft.ServerAddress(m)})
	}
	return c
}

// SetCell makes the marker name the cell. Called when FormCell was applied.
func (r *Replica) SetCell(cell uint64) error { return r.disk.mark(r.opts.ID, cell) }

// started gives raft, or Unavailable before Start.
func (r *Replica) started() (*raft.Raft, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.raft == nil {
		return nil, errs.New(errs.Unavailable, "", "%s is no member of a cell yet", r.id)
	}
	return r.raft, nil
}

// spawn runs a goroutine that Close waits for; false when closing.
func (r *Replica) spawn(f func()) bool { return r.run(&r.wg, f) }

// ask runs a goroutine that asks raft and waits for the answer; false when closing.
func (r *Replica) ask(f func()) bool { return r.run(&r.asked, f) }

func (r *Replica) run(group *sync.WaitGroup, f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	group.Go(f)
	return true
}
