package chunkd

import (
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// attempt bounds one round of calls at the metadata servers.
	attempt = 3 * time.Second
	// firstPause and lastPause are the waits between rounds; each is twice the one before.
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
	// defaultInterval is the heartbeat's until the leader tells another, shortest
	// and longest are what a leader can tell.
	defaultInterval  = time.Second
	shortestInterval = 10 * time.Millisecond
	longestInterval  = 10 * time.Second
	// firstTelling and longestTelling bound the times between two log lines about a
	// metadata service that can't be reached.
	firstTelling   = 5 * time.Second
	longestTelling = time.Minute
)

// persist calls the metadata service until it answers or ctx ends; the first
// failure is logged, and what it waits for again after 5 s, 10 s, 20 s and so on, then
// once a minute. Answers other than unavailable come back at once.
func (s *Server) persist(ctx context.Context, what string, call func(context.Context, pb.MetaClient) error) error {
	begun, tell := time.Now(), time.Duration(0)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.once(ctx, call)
		if kind := errs.KindOf(err); kind != errs.Unavailable && kind != errs.Deadline || ctx.Err() != nil {
			return errs.Wrap(err, "%s", what)
		}
		if waited := time.Since(begun); waited >= tell {
			s.log.Warn("metadata service can't be reached, trying again", "task", what, "dur", waited.Round(time.Second), "err", err)
			tell = max(waited+min(waited, longestTelling), firstTelling)
		}
		select {
		case <-ctx.Done():
			return errs.Wrap(err, "%s", what)
		case <-time.After(pause):
		}
	}
}

func (s *Server) once(ctx context.Context, call func(context.Context, pb.MetaClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return s.meta.Do(ctx, call)
}

// findCell learns the cell's id, which exists once the cell has formed.
func (s *Server) findCell(ctx context.Context) (cell layout.CellID, err error) {
	err = s.persist(ctx, "find the cell", func(ctx context.Context, m pb.MetaClient) error {
		reply, err := m.Peek(ctx, &pb.PeekRequest{})
		if err != nil {
			return err
		}
		if reply.Cell == 0 {
			return errs.New(errs.Unavailable, "", "metadata server %s does not know its cell yet", reply.Id)
		}
		cell = layout.CellID(reply.Cell)
		return nil
	})
	return cell, err
}

// register records address, devices and incarnations at the metadata leader, and
// takes over the ids that it gives.
func (s *Server) register(ctx context.Context) error {
	req := &pb.RegisterServerRequest{Cell: uint64(s.identity.cell), Uuid: s.identity.server[:], DataAddress: s.dataAddress,
		ControlAddress: s.controlAddress, Domain: s.cfg.Domain, Version: s.cfg.Version, Devices: s.report()}
	var reply *pb.RegisterServerReply
	err := s.persist(ctx, "register", func(ctx context.Context, m pb.MetaClient) (err error) {
		reply, err = m.RegisterServer(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	if layout.CellID(reply.Cell) != s.identity.cell || len(reply.Devices) != len(s.devices) {
		return errs.New(errs.WrongCell, "register", "cell %x answered with %d devices, this server has %d of cell %x",
			reply.Cell, len(reply.Devices), len(s.devices), uint64(s.identity.cell))
	}
	s.id = layout.ServerID(reply.Server)
	for i, d := range s.devices {
		if err := d.store.SetDevice(layout.DeviceID(reply.Devices[i].Id)); err != nil {
			return errs.Wrap(err, "register device %s", d.dir)
		}
	}
	return nil
}

// report tells each device's identity and fill.
func (s *Server) report() []*pb.Device {
	var list []*pb.Device
	for _, d := range s.devices {
		super, usage := d.store.Superblock(), d.store.Usage()
		state := "up"
		if d.store.Err() != nil {
			state = "down"
		}
		list = append(list, &pb.Device{Id: uint64(super.Device), Uuid: super.UUID[:], TotalBytes: usage.Total, UsedBytes: usage.Stored,
			ReservedBytes: usage.Reserved - min(usage.Reserved, usage.Stored), OtherBytes: usage.Other, Incarnation: uint64(super.Incarnation), Path: d.dir, State: state})
	}
	return list
}

// heartbeats tells the leader at its interval that the server lives. The first
// one goes out soon: it tells the interval.
func (s *Server) heartbeats(ctx context.Context) {
	interval, silent := shortestInterval, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		told, err := s.heartbeat(ctx)
		switch {
		case err == nil:
			interval = told
			s.keepMetas()
			if silent {
				s.log.Info("metadata service answers again")
			}
		case errs.KindOf(err) == errs.NotFound:
			s.log.Info("metadata service does not know this server, registering again")
			err = s.register(ctx)
		}
		if err != nil && ctx.Err() == nil && !silent {
			s.log.Warn("heartbeat failed", "err", err)
		}
		silent = err != nil
	}
}

func (s *Server) heartbeat(ctx context.Context) (interval time.Duration, err error) {
	req := &pb.HeartbeatRequest{Server: uint64(s.id), Devices: s.report(), DataAddress: s.dataAddress}
	now := time.Now()
	s.classes.report(req, now)
	for _, p := range s.probers {
		if l := p.report(now); l != nil {
			req.Latencies = append(req.Latencies, l)
		}
	}
	var reply *pb.HeartbeatReply
	err = s.once(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
		reply, err = m.Heartbeat(ctx, req)
		return err
	})
	if err == nil {
		interval = time.Duration(reply.IntervalMs) * time.Millisecond
		s.obey(reply.Refused)
		s.probe(reply.Probe)
		err = s.classes.learn(reply)
	}
	if interval == 0 {
		interval = defaultInterval
	}
	return min(max(interval, shortestInterval), longestInterval), err
}

// probe measures devices that are suspected of limping.
func (s *Server) probe(ids []uint64) {
	for _, p := range s.probers {
		if slices.Contains(ids, uint64(p.device.store.Superblock().Device)) {
			p.ask()
		}
	}
}

// obey stops the devices of which a later life is registered.
func (s *Server) obey(refused []*pb.RefusedDevice) {
	for _, r := range refused {
		if st := s.device(layout.DeviceID(r.Device)); st != nil && st.Err() == nil {
			st.Refuse(errs.New(errs.Kind(r.Kind), "", "%s", r.Message).WithHint("%s", r.Hint))
		}
	}
}
