package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// digestTimeout bounds the computation of one tag's digest: it reads the headers
// of all of its stripes.
const digestTimeout = time.Hour

// cleanTimeout bounds the cleaning of one volume by a janitor; the next goes on.
const cleanTimeout = time.Hour

// maxDeviceUpdates bounds the devices of one record of figures.
const maxDeviceUpdates = 256

// pace is the least time between two looks, however often something happens.
const pace = 50 * time.Millisecond

// runControllers looks at the state once a second and when something happened,
// and begins the tasks that the planner gives. The planner bounds how many run
// at once. It returns when all of them ended; ctx ends them.
func (s *Server) runControllers(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.recordMembers(ctx) })
	ticker := time.NewTicker(s.opts.Timing.Control)
	defer ticker.Stop()
	for {
		s.tellOfDowns()
		s.judgeDevices()
		s.recordFigures(ctx)
		s.tickQoS(ctx)
		for _, task := range s.control.plan(s.machine.View()) {
			running.Go(func() { s.runTask(ctx, task) })
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.kick:
			select {
			case <-ctx.Done():
				return
			case <-time.After(pace):
			}
		}
	}
}

// runTask carries one task out and tells the planner how it ended. It is the
// one place where a task's error is reported.
func (s *Server) runTask(ctx context.Context, task reconcile.Task) {
	err := s.carryOut(ctx, task)
	switch {
	case err == nil || ctx.Err() != nil:
	case errs.KindOf(err) == errs.Busy:
		s.log.Info("task put off", "task", taskName(task), "reason", err)
	default:
		s.log.Warn("task failed", "task", taskName(task), "err", err)
	}
	s.control.done(task, err == nil)
	if err == nil {
		s.wake()
	}
}

func (s *Server) carryOut(ctx context.Context, task reconcile.Task) error {
	switch t := task.(type) {
	case reconcile.MarkServer:
		return s.do(ctx, state.SetServerState{Server: t.Server, Up: t.Up, Registered: t.Registered})
	case reconcile.ExpireSession:
		return s.do(ctx, state.ExpireSession{Session: t.Session})
	case reconcile.GiveBack:
		return s.giveBack(ctx, t)
	case reconcile.Recover:
		return s.recover(ctx, t)
	case reconcile.Delete:
		return s.delete(ctx, t)
	case reconcile.Finalize:
		return s.finalize(ctx, t)
	case reconcile.GiveUp:
		return s.do(ctx, state.ChangeDevices{Devices: []deviceID{t.Device}, Change: state.GiveUpDevice, Registered: t.Registered})
	case reconcile.Rebuild:
		return s.rebuild(ctx, t)
	case reconcile.EndRebalance:
		return s.do(ctx, state.Rebalance{Began: t.Began, Why: t.Why})
	case reconcile.Digest:
		return s.digest(ctx, t)
	case reconcile.Clean:
		return s.clean(ctx, t)
	case reconcile.Flatten:
		return s.do(ctx, state.FlattenVolume{Volume: state.VolumeRef{ID: t.Volume}})
	case reconcile.Free:
		return s.do(ctx, state.FreeSegments{Volume: t.Volume})
	case reconcile.Purge:
		return s.do(ctx, state.PurgeVolume{Volume: t.Volume})
	}
	return errs.New(errs.Internal, "", "task %T is not known", task)
}

// do proposes a command whose result does not matter.
func (s *Server) do(ctx context.Context, cmd state.Command) error {
	_, err := s.propose(ctx, cmd)
	return err
}

// giveBack drops a segment that nobody works on.
func (s *Server) giveBack(ctx context.Context, t reconcile.GiveBack) error {
	if s.creating.has(t.Segment) {
		return errs.New(errs.Busy, "give back", "segment %d is being created", t.Segment)
	}
	return s.do(ctx, state.DropSegments{Segments: []layout.SegmentID{t.Segment}})
}

// recover asks a janitor to recover a volume and waits for it.
func (s *Server) recover(ctx context.Context, t reconcile.Recover) error {
	c, err := s.chunk(s.machine.View(), t.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timing.RecoverCall)
	defer cancel()
	r, err := c.RecoverVolume(ctx, &pb.RecoverVolumeRequest{Volume: uint64(t.Volume), Reason: t.Reason})
	if err != nil {
		return errs.Wrap(pb.FromStatus(err), "recover volume %d through chunk server %d", t.Volume, t.Server)
	}
	if r.GetUndecided() != "" {
		return errs.New(errs.Undecided, "", "recover volume %d: %s", t.Volume, r.GetUndecided())
	}
	s.log.Info("volume recovered", "volume", t.Volume, "seq", r.GetCut(), "server", t.Server)
	return nil
}

// digest asks a janitor for a tag's digest and waits for it.
func (s *Server) digest(ctx context.Context, t reconcile.Digest) error {
	c, err := s.chunk(s.machine.View(), t.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	_, err = c.DigestTag(ctx, &pb.DigestTagRequest{Snapshot: uint64(t.Snapshot)})
	return errs.Wrap(pb.FromStatus(err), "compute the digest of tag %d through chunk server %d", t.Snapshot, t.Server)
}

// clean has a janitor clean a volume and waits for it. Somebody who opened the volume
// meanwhile cleans it himself.
func (s *Server) clean(ctx context.Context, t reconcile.Clean) error {
	c, err := s.chunk(s.machine.View(), t.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	r, err := c.CleanVolume(ctx, &pb.CleanVolumeRequest{Volume: uint64(t.Volume), Reason: t.Reason})
	err = pb.FromStatus(err)
	switch errs.KindOf(err) {
	case errs.LeaseHeld, errs.LeaseLost, errs.StaleEpoch, errs.NotFound:
		return errs.New(errs.Busy, "", "volume %d was opened: %v", t.Volume, err)
	case errs.OK:
		s.cleaned.Add(r.GetMovedBytes())
		s.log.Info("volume cleaned", "volume", t.Volume, "moved", r.GetMovedBytes(), "garbage", r.GetGarbageBytes(), "server", t.Server)
	}
	return errs.Wrap(err, "clean volume %d through chunk server %d", t.Volume, t.Server)
}

// delete deletes a segment's shards, then takes it out of the state.
func (s *Server) delete(ctx context.Context, t reconcile.Delete) error {
	view := s.machine.View()
	seg, ok := view.Segment(t.Segment)
	if !ok {
		return nil
	}
	if err := first(s.deleteShards(ctx, view, shardsOf(&seg, t.Shards))); err != nil {
		return err
	}
	return s.do(ctx, state.MarkDeleted{Segments: []layout.SegmentID{t.Segment}})
}

// finalize brings a segment's seal to its shards, then records that they have it.
// Shards that do not match it, or are not there, are marked lost before, as are
// those that were not asked because their device is dead: should it come back,
// they are not taken for whole.
func (s *Server) finalize(ctx context.Context, t reconcile.Finalize) error {
	view := s.machine.View()
	seg, ok := view.Segment(t.Segment)
	if !ok || seg.State != state.Sealed {
		return nil
	}
	failed := s.finalizeShards(ctx, view, shardsOf(&seg, t.Shards))
	lost, err := LostOf(&seg, t.Shards, byShard(failed))
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		if err := s.do(ctx, state.MarkLost{Shards: lost}); err != nil {
			return err
		}
	}
	return s.do(ctx, state.MarkFinalized{Segments: []layout.SegmentID{t.Segment}})
}

func shardsOf(seg *state.Segment, shards []reconcile.Shard) map[serverID][]placed {
	sorted := map[serverID][]placed{}
	for _, sh := range shards {
		sorted[sh.Server] = append(sorted[sh.Server], placed{segment: seg, shard: sh.Index, server: sh.Server, place: sh.Placement})
	}
	return sorted
}

func first(failed []failure) error {
	if len(failed) == 0 {
		return nil
	}
	return failed[0].err
}

// recordFigures records figures of devices that changed much.
func (s *Server) recordFigures(ctx context.Context) {
	updates := s.alive.changed(s.machine.View(), s.control.limps, maxDeviceUpdates)
	if len(updates) == 0 {
		return
	}
	if err := s.do(ctx, state.UpdateDevices{Devices: updates}); err != nil && ctx.Err() == nil {
		s.log.Warn("figures of devices not recorded", "err", err)
	}
}

// tellOfDowns tells sessions to move on from servers that went down: those that
// write a volume with an unsealed segment there.
func (s *Server) tellOfDowns() {
	s.mu.Lock()
	downs := s.downs
	s.downs = map[serverID]struct{}{}
	s.mu.Unlock()
	view := s.machine.View()
	for id := range downs {
		srv, ok := view.Server(id)
		if !ok || srv.Up {
			continue
		}
		for _, session := range writersOn(view, &srv) {
			s.sessions.tell(session, &pb.SessionEvent{Kind: pb.SessionEvent_SERVER_DOWN, Server: uint64(id)})
		}
	}
}

// writersOn lists the sessions with unsealed segments on a server.
func writersOn(view *state.View, srv *state.Server) []sessionID {
	var list []sessionID
	for _, dev := range srv.Devices {
		for after, more := layout.SegmentID(0), true; more; {
			var page []state.Segment
			page, more = view.SegmentsOnDevice(dev, after, maxPage)
			for i := range page {
				after = page[i].ID
				if !page[i].Unsealed() {
					continue
				}
				v, _ := view.Volume(page[i].Volume)
				if v.Holder != 0 && !slices.Contains(list, v.Holder) {
					list = append(list, v.Holder)
				}
			}
		}
	}
	return list
}

func taskName(t reconcile.Task) string {
	switch t.(type) {
	case reconcile.MarkServer:
		return "mark server"
	case reconcile.ExpireSession:
		return "expire session"
	case reconcile.GiveBack:
		return "give back"
	case reconcile.Recover:
		return "recover"
	case reconcile.Delete:
		return "delete"
	case reconcile.Finalize:
		return "finalize"
	case reconcile.GiveUp:
		return "give up"
	case reconcile.Rebuild:
		return "rebuild"
	case reconcile.EndRebalance:
		return "end rebalance"
	case reconcile.Digest:
		return "digest tag"
	case reconcile.Free:
		return "free segments"
	case reconcile.Clean:
		return "clean volume"
	case reconcile.Flatten:
		return "flatten volume"
	}
	return "purge"
}
