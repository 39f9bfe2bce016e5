package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// session keeps the client's standing with the metadata service: one goroutine
// renews it, waits for events and hands them to the volumes. Leases hang on it,
// but no read or write waits for it: a metadata outage stops nobody. When the
// metadata service has ended it, the volumes open for writing are lost, and a
// new one is opened for those to come.
type session struct {
	cell *Cell
	name layout.CellID
	id   atomic.Uint64
	ttl  atomic.Int64 // a time.Duration

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func openSession(ctx context.Context, c *Cell) (*session, error) {
	r, err := callOpenSession(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &session{cell: c, name: layout.CellID(r.Cell)}
	s.begin(r)
	return s, nil
}

func callOpenSession(ctx context.Context, c *Cell) (*pb.OpenSessionReply, error) {
	command := newCommand()
	return call(ctx, c, "open a session", func(ctx context.Context, m pb.MetaClient) (*pb.OpenSessionReply, error) {
		return m.OpenSession(ctx, &pb.OpenSessionRequest{Command: command, Owner: c.cfg.Owner, Janitor: c.cfg.janitor})
	})
}

func (s *session) begin(r *pb.OpenSessionReply) {
	s.id.Store(r.Session)
	s.ttl.Store(int64(time.Duration(r.TtlMs) * time.Millisecond))
}

// start starts the goroutine that keeps the session.
func (s *session) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() { s.run(ctx) })
}

func (s *session) current() layout.SessionID { return layout.SessionID(s.id.Load()) }

// span is a part of the session's time to live.
func (s *session) span(parts int64) time.Duration { return time.Duration(s.ttl.Load() / parts) }

// run keeps a session, and the next one when it was lost.
func (s *session) run(ctx context.Context) {
	for {
		err := s.keep(ctx)
		if err == nil {
			return
		}
		lost := s.current()
		s.cell.cfg.Logger.Warn("session lost", "session", lost, "err", err)
		for _, v := range s.cell.writers() {
			if v.w.lease.session == lost {
				v.lose(errs.As(err, errs.LeaseLost, "write %s", v.name))
			}
		}
		if s.reopen(ctx) != nil {
			return
		}
		next := s.current()
		s.done.Go(func() { s.cell.pinAgain(ctx, next) }) // the session is kept meanwhile
	}
}

// keep renews the session until ctx ends, which gives nil, or until the metadata
// service no longer knows it.
func (s *session) keep(ctx context.Context) error {
	var seen uint64
	for ctx.Err() == nil {
		r, err := s.renew(ctx, seen)
		switch kind := errs.KindOf(err); {
		case kind == errs.OK:
			for _, e := range r.Events {
				s.deliver(ctx, e)
				seen = max(seen, e.Id)
			}
		case kind == errs.LeaseLost || kind == errs.NotFound:
			return err
		default:
			pause(ctx, s.span(20))
		}
	}
	return nil
}

// reopen opens the next session; it gives an error only when ctx ends.
func (s *session) reopen(ctx context.Context) error {
	for {
		r, err := callOpenSession(ctx, s.cell)
		if err == nil {
			s.begin(r)
			return nil
		}
		pause(ctx, s.span(20))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *session) renew(ctx context.Context, seen uint64) (*pb.KeepSessionReply, error) {
	var r *pb.KeepSessionReply
	wait := s.span(3)
	ctx, cancel := context.WithTimeout(ctx, wait+s.span(3))
	defer cancel()
	err := s.cell.meta.DoWithin(ctx, wait+s.span(4), func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.KeepSession(ctx, &pb.KeepSessionRequest{Session: s.id.Load(), WaitMs: uint32(wait.Milliseconds()), SeenEvent: seen})
		return err
	})
	return r, err
}

func (s *session) deliver(ctx context.Context, e *pb.SessionEvent) {
	for _, v := range s.cell.writers() {
		switch {
		case e.Kind == pb.SessionEvent_BARRIER && layout.VolumeID(e.Volume) == v.id:
			v.w.calls.start(func() { v.w.barrier(e.Barrier, e.Root) })
		case e.Kind == pb.SessionEvent_SERVER_DOWN:
			v.serverDown(layout.ServerID(e.Server))
		case e.Kind == pb.SessionEvent_LEASE_LOST && layout.VolumeID(e.Volume) == v.id && s.deposed(ctx, v):
			v.lose(errs.New(errs.LeaseLost, "write "+v.name, "another writer took the volume over").
				WithHint("open it again to take it back"))
		}
	}
}

// deposed asks whether a handle's epoch is over: the event may be about an older
// handle of this client. When nobody answers, the chunk servers' fences tell.
func (s *session) deposed(ctx context.Context, v *Volume) bool {
	ctx, cancel := context.WithTimeout(ctx, s.span(3))
	defer cancel()
	r, err := call(ctx, s.cell, "look the epoch up", func(ctx context.Context, m pb.MetaClient) (*pb.GetVolumeReply, error) {
		return m.GetVolume(ctx, &pb.GetVolumeRequest{Id: uint64(v.id)})
	})
	return err == nil && layout.Epoch(r.GetVolume().GetEpoch()) > v.w.lease.epoch
}

// close ends the session with the metadata service, at its best.
func (s *session) close() {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.CloseSession(ctx, &pb.CloseSessionRequest{Session: s.id.Load()})
		return err
	})
}

// stop ends the goroutine; the session is left to expire.
func (s *session) stop() {
	s.cancel()
	s.done.Wait()
}

// newCommand draws a command id: the same id in a repeat makes it harmless.
func newCommand() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
