package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// session keeps the client's standing with the metadata service: one goroutine
// renews it, waits for events and hands them to the volumes. Leases hang on it,
// but no read or write waits for it: a metadata outage stops nobody.
type session struct {
	cell *Cell
	id   layout.SessionID
	name layout.CellID
	ttl  time.Duration

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func openSession(ctx context.Context, c *Cell) (*session, error) {
	r, err := call(ctx, c, "open a session", func(ctx context.Context, m pb.MetaClient) (*pb.OpenSessionReply, error) {
		return m.OpenSession(ctx, &pb.OpenSessionRequest{Command: newCommand(), Owner: c.cfg.Owner})
	})
	if err != nil {
		return nil, err
	}
	s := &session{cell: c, id: layout.SessionID(r.Session), name: layout.CellID(r.Cell), ttl: time.Duration(r.TtlMs) * time.Millisecond}
	run, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() { s.keep(run) })
	return s, nil
}

// keep renews the session until it is closed. A session that the metadata
// service no longer knows costs its volumes their leases.
func (s *session) keep(ctx context.Context) {
	var seen uint64
	for ctx.Err() == nil {
		r, err := s.renew(ctx, seen)
		switch kind := errs.KindOf(err); {
		case kind == errs.OK:
			for _, e := range r.Events {
				s.deliver(e)
				seen = max(seen, e.Id)
			}
		case kind == errs.LeaseLost || kind == errs.NotFound:
			for _, v := range s.cell.writers() {
				v.lose(errs.As(err, errs.LeaseLost, "write %s", v.name))
			}
			return
		default:
			pause(ctx, s.ttl/20)
		}
	}
}

func (s *session) renew(ctx context.Context, seen uint64) (*pb.KeepSessionReply, error) {
	var r *pb.KeepSessionReply
	wait := s.ttl / 3
	ctx, cancel := context.WithTimeout(ctx, wait+s.ttl/3)
	defer cancel()
	err := s.cell.meta.DoWithin(ctx, wait+s.ttl/4, func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.KeepSession(ctx, &pb.KeepSessionRequest{Session: uint64(s.id), WaitMs: uint32(wait.Milliseconds()), SeenEvent: seen})
		return err
	})
	return r, err
}

func (s *session) deliver(e *pb.SessionEvent) {
	for _, v := range s.cell.writers() {
		switch {
		case e.Kind == pb.SessionEvent_SERVER_DOWN:
			v.serverDown(layout.ServerID(e.Server))
		case e.Kind == pb.SessionEvent_LEASE_LOST && layout.VolumeID(e.Volume) == v.id:
			v.lose(errs.New(errs.LeaseLost, "write "+v.name, "another writer took the volume over"))
		}
	}
}

// close ends the session with the metadata service, at its best.
func (s *session) close() {
	s.cancel()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.CloseSession(ctx, &pb.CloseSessionRequest{Session: uint64(s.id)})
		return err
	})
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
