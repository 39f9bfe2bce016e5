package server

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/meta/replica"
	"strake/meta/state"
	"strake/proto/pb"
)

// Replica is what the server needs of a replica.Replica.
type Replica interface {
	Propose(ctx context.Context, command []byte) (any, error)
	Read(ctx context.Context) error
	Leading() error
	Leader() string
	Members() []replica.Member
	AddMember(ctx context.Context, addr string) error
	RemoveMember(ctx context.Context, addr string) error
}

// Options are what a Server needs.
type Options struct {
	Replica Replica
	Machine *Machine
	Pool    *dial.Pool // connections to chunk servers; the caller closes it
	Peek    func(*pb.PeekRequest) *pb.PeekReply
	Waiting func() string // why this server is in no cell yet
	// Since tells the version of a command; nil: state.Since.
	Since func(state.Command) uint32
	// ShardLength is that of a cell that forms, in bytes.
	ShardLength int64
	Logger      *slog.Logger
	Timing      Timing
}

// Server answers the metadata API. Safe for concurrent use.
type Server struct {
	pb.UnimplementedMetaServer
	opts     Options
	replica  Replica
	machine  *Machine
	log      *slog.Logger
	sessions *sessions
	alive    *liveness
	control  *control
	moves    *moveBudget
	reports  *reports
	journal  *journal
	qos      *shares
	blocked  *blockedWriters
	cleaned  atomic.Uint64 // bytes that janitors relocated since this server leads or led
	made     *made
	creating creating
	kick     chan struct{} // a place for one: something happened that a controller may act on
	changing chan struct{} // a place for one: a change of devices is judged and carried out
	begun    atomic.Bool   // the soft state of a term in which this server leads is there

	barriers barriers

	mu    sync.Mutex
	downs map[serverID]struct{} // guarded by mu: servers whose sessions must be told
}

// New makes a server. Its Happened must be the machine's listener.
func New(opts Options) *Server {
	opts.Timing = opts.Timing.withDefaults()
	if opts.Since == nil {
		opts.Since = state.Since
	}
	s := &Server{
		opts: opts, replica: opts.Replica, machine: opts.Machine, log: opts.Logger,
		alive: newLiveness(opts.Timing.ServerSilence), control: newControl(opts.Timing),
		moves: newMoveBudget(), reports: newReports(), journal: &journal{}, blocked: newBlockedWriters(), made: &made{}, qos: newShares(), kick: make(chan struct{}, 1), changing: make(chan struct{}, 1),
		downs: map[serverID]struct{}{},
	}
	s.sessions = newSessions(opts.Timing.SessionTTL, s.control.kept)
	return s
}

// Options are the gRPC server's: errors get their statuses, calls that this program
// must not serve are refused, and every call but Peek and the questions of package
// health goes to the leader.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxReply),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.UnaryInterceptor(s.intercept), grpc.StreamInterceptor(s.interceptStream),
	}
}

func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := pb.CheckCall(ctx, info.FullMethod, req); err != nil {
		return nil, pb.ToStatus(err)
	}
	if !strings.HasSuffix(info.FullMethod, "/Peek") && !strings.HasPrefix(info.FullMethod, "/grpc.health.") {
		if err := s.leading(); err != nil {
			return nil, pb.ToStatus(err)
		}
	}
	reply, err := handle(ctx, req)
	if err != nil {
		return nil, pb.ToStatus(err)
	}
	return reply, nil
}

// leading refuses what another server, or none yet, can answer.
func (s *Server) leading() error {
	err := s.replica.Leading()
	switch {
	case errs.KindOf(err) == errs.Unavailable:
		return errs.New(errs.Unavailable, "", "the cell has not formed: %s", s.opts.Waiting())
	case err == nil && !s.begun.Load():
		return errs.New(errs.Unavailable, "", "the leader is taking over")
	}
	return err
}

// Peek implements pb.MetaServer.
func (s *Server) Peek(_ context.Context, r *pb.PeekRequest) (*pb.PeekReply, error) {
	return s.opts.Peek(r), nil
}

// propose carries a command out and gives its result, or its refusal.
func (s *Server) propose(ctx context.Context, cmd state.Command) (state.Result, error) {
	if err := s.knownToAll(ctx, cmd); err != nil {
		return state.Result{}, err
	}
	answer, err := s.replica.Propose(ctx, state.Encode(cmd))
	if err != nil {
		return state.Result{}, err
	}
	result, ok := answer.(state.Result)
	if !ok {
		return state.Result{}, errs.New(errs.Internal, "propose", "the machine answered %T", answer)
	}
	return result, result.Err
}

// fresh gives the state with everything in it that was acknowledged before.
func (s *Server) fresh(ctx context.Context) (*state.View, error) {
	if err := s.replica.Read(ctx); err != nil {
		return nil, err
	}
	return s.machine.View(), nil
}

// Lead runs while this server leads: it gives every session and every chunk
// server a new term of grace, then runs the controllers.
func (s *Server) Lead(ctx context.Context, term uint64) {
	view := s.machine.View()
	if view.Cell().ID == 0 {
		if err := s.form(ctx); err != nil {
			s.log.Error("cell not formed", "err", err)
			return
		}
		view = s.machine.View()
	}
	s.sessions.begin(term, view.Sessions())
	s.alive.begin()
	s.moves.begin()
	s.made.begin()
	s.qos.begin()
	defer s.sessions.end()
	for _, srv := range view.Servers() {
		if !srv.Up {
			s.mustTell(srv.ID)
		}
	}
	s.control.begin()
	defer s.control.end()
	s.begun.Store(true)
	defer s.begun.Store(false)
	s.runControllers(ctx)
}

// heard notes a sign of life of a chunk server.
func (s *Server) heard(id serverID, devices []saying) {
	s.alive.report(id, devices)
	s.control.heard(id)
	s.control.holds(devices)
}

// Happened takes what commands changed. It is called by the state machine's
// goroutine on every server and must not block. Only a leader does something
// with it: whoever follows it begins anew from the state.
func (s *Server) Happened(events []state.Event) {
	if !s.begun.Load() {
		return
	}
	for _, e := range events {
		switch e := e.(type) {
		case state.SessionOpened:
			s.sessions.opened(e.Session)
		case state.SessionEnded:
			s.sessions.ended(e.Session)
		case state.LeaseTaken:
			if e.Old != 0 {
				s.sessions.tell(e.Old, &pb.SessionEvent{Kind: pb.SessionEvent_LEASE_LOST, Volume: uint64(e.Volume)})
			}
		case state.ServerRegistered:
			s.heard(e.Server, nil)
		case state.ServerWentDown:
			s.mustTell(e.Server)
		}
		s.noted(e)
		if makesWork(e) {
			s.wake()
		}
		logEvent(s.log, e)
	}
}

// makesWork tells whether the controllers may have something to do because of e.
func makesWork(e state.Event) bool {
	switch e.(type) {
	case state.ServerRegistered, state.ServerWentUp, state.ServerWentDown, state.SessionEnded, state.LeaseExpired,
		state.SegmentSealed, state.SegmentDropped, state.SegmentRetired, state.VolumePurged, state.SnapshotGone, state.VolumeRolledBack,
		state.ShardLost, state.DeviceStateChanged:
		return true
	}
	return false
}

// wake makes the controllers look at the state soon.
func (s *Server) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *Server) mustTell(id serverID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downs[id] = struct{}{}
}

// nowUnix is the leader's clock, for what is only shown.
func nowUnix() uint64 { return uint64(time.Now().Unix()) }
