package meta

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"strake/internal/dial"
	"strake/internal/discovery"
	"strake/internal/errs"
	"strake/internal/health"
	"strake/internal/telemetry"
	"strake/internal/vfs"
	"strake/meta/replica"
	"strake/meta/replica/mux"
	"strake/meta/server"
	"strake/meta/state"
	"strake/proto/pb"
)

// graceful bounds how long Close waits for calls under way.
const graceful = time.Second

// Server is a running metadata server.
type Server struct {
	cfg     Config
	pool    *dial.Pool
	mux     *mux.Mux
	grpc    *grpc.Server
	machine *server.Machine
	replica *replica.Replica
	api     *server.Server
	listing *discovery.Registrar // nil: there is no etcd

	metrics *telemetry.Endpoint // nil: none

	cancel context.CancelFunc
	wg     sync.WaitGroup // join and the gRPC server
	fatal  chan error     // holds the first reason to end
	once   sync.Once      // Close

	mu     sync.Mutex
	asking bool     // guarded by mu: it does not know yet whether its directory is an old copy
	why    string   // guarded by mu: why this server is in no cell yet
	peers  []string // guarded by mu: who forms the cell; none before etcd told
}

// Run runs a metadata server until ctx ends or the server can't go on; the
// error is nil only in the first case. The process must end then: after a
// failure of the log something may still hang in the disk.
func Run(ctx context.Context, cfg Config) error {
	s, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return s.Close()
	case err := <-s.fatal:
		return errors.Join(err, s.Close())
	}
}

// Start starts a metadata server. It returns when the server listens; the cell
// may form later. ctx bounds the start alone. Errors: Busy for a port or a
// directory in use, Corrupt for a damaged directory, InvalidArgument,
// PermissionDenied for an address beyond loopback.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	below, err := cfg.Policy.Listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	cfg, err = cfg.check(below.Addr())
	var fs vfs.FS
	if err == nil {
		fs, err = cfg.open()
	}
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	s := &Server{cfg: cfg, pool: dial.NewPool(cfg.Policy), mux: mux.New(below), fatal: make(chan error, 1),
		why: "this server is starting", peers: cfg.Peers}
	if err := s.build(fs); err != nil {
		s.mux.Close()
		s.pool.Close()
		return nil, err
	}
	return s, s.run()
}

// build connects state machine, replica and API.
func (s *Server) build(fs vfs.FS) (err error) {
	s.machine = server.NewMachine(s.happened)
	s.replica, err = replica.Open(replica.Options{
		ID: s.cfg.Advertise, FS: fs, Machine: s.machine, Listener: s.mux.Raft(), Dial: s.cfg.Policy.Dial,
		Lead:  func(ctx context.Context, term uint64) { s.api.Lead(ctx, term) },
		Fatal: s.fail, Logger: s.cfg.Logger, Timing: s.cfg.Raft,
	})
	if err != nil {
		return err
	}
	s.api = server.New(server.Options{
		Replica: s.replica, Machine: s.machine, Pool: s.pool, Peek: s.peek, Waiting: s.waiting, Since: s.cfg.since,
		ShardLength: s.cfg.ShardLength, Logger: s.cfg.Logger, Timing: s.cfg.Timing,
	})
	s.grpc = grpc.NewServer(append(s.cfg.Policy.ServerOptions(), s.api.Options()...)...)
	pb.RegisterMetaServer(s.grpc, s.api)
	health.Register(s.grpc, s.ready)
	return nil
}

// run starts the goroutines.
func (s *Server) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.setAsking(s.replica.HasState()) // before anybody can ask this one
	s.wg.Go(func() { s.grpc.Serve(s.mux.GRPC()) })
	if s.cfg.Metrics != "" {
		var err error
		if s.metrics, err = telemetry.Listen(ctx, s.cfg.Policy, s.cfg.Metrics, s.cfg.Logger, s.api.Figures()); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if err := s.list(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	if s.replica.HasState() {
		s.wg.Go(func() { s.rejoin(ctx) })
	} else {
		s.wg.Go(func() { s.join(ctx) })
	}
	s.cfg.Logger.Info("metadata server started", "peer", s.cfg.Advertise, "dir", s.cfg.Dir)
	return nil
}

// happened passes what commands changed on to the API, and makes the marker
// name the cell.
func (s *Server) happened(events []state.Event) {
	for _, e := range events {
		if formed, ok := e.(state.CellFormed); ok {
			if err := s.replica.SetCell(uint64(formed.Cell)); err != nil {
				s.fail(errs.Wrap(err, "mark the directory"))
			}
		}
	}
	s.api.Happened(events)
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.mux.GRPC().Addr() }

// Fatal gives the reason when the server can't go on.
func (s *Server) Fatal() <-chan error { return s.fatal }

// fail says, once, that the server can't go on.
func (s *Server) fail(err error) {
	select {
	case s.fatal <- err:
	default:
	}
}

// peek says what this server is, and what it knows of the one that asks.
func (s *Server) peek(r *pb.PeekRequest) *pb.PeekReply {
	record := s.machine.View().Cell()
	cell, known := uint64(record.ID), record.Member(r.GetMember())
	directory, life := s.life()
	return &pb.PeekReply{
		Directory: directory, Life: life, KnownDirectory: known.Directory, KnownLife: known.Life,
		Id: s.cfg.Advertise, Empty: s.replica.Empty(), Wiped: s.replica.Wiped() && !s.replica.Formed(),
		Cell: cell, Formed: cell != 0 || s.replica.Formed(), Leader: s.replica.Leader(), Peers: s.founders(), Version: s.cfg.Version,
		Reads: s.cfg.reads(),
	}
}

// life tells which directory this is and its life, once the others were asked about
// it. Told before, the leader would record a life that the others then name to this
// very server as one that they have seen.
func (s *Server) life() (directory, life uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking {
		return 0, 0
	}
	return s.replica.Life()
}

// setAsking notes whether the others are still to be asked about the directory.
func (s *Server) setAsking(asking bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = asking
}

// ready tells whether this server is a member of a cell that has formed, and goes with
// the others.
func (s *Server) ready() error {
	if s.machine.View().Cell().ID == 0 {
		return errs.New(errs.Unavailable, "", "%s", s.waiting())
	}
	return s.replica.Follows()
}

func (s *Server) waiting() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// waitFor notes why this server is in no cell yet.
func (s *Server) waitFor(why string) {
	s.mu.Lock()
	changed := s.why != why
	s.why = why
	s.mu.Unlock()
	if changed {
		s.cfg.Logger.Info("waiting for the cell", "err", why)
	}
}

// Close stops the server: controllers first, then leadership is handed on, then
// calls under way get a second to end.
func (s *Server) Close() (err error) {
	s.once.Do(func() {
		s.cancel()
		s.metrics.Close()
		if s.listing != nil {
			s.listing.Close()
		}
		err = s.replica.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.grpc.GracefulStop()
		}()
		select {
		case <-done:
		case <-time.After(graceful):
			s.grpc.Stop()
			<-done
		}
		err = errors.Join(err, s.mux.Close())
		s.wg.Wait()
		s.pool.Close()
		s.cfg.Logger.Info("metadata server stopped", "peer", s.cfg.Advertise)
	})
	return err
}
