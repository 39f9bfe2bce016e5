package client

import (
	"time"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

const (
	// limpsAgain is how often the metadata service is told that a device still limps.
	limpsAgain = 5 * time.Second
	// probeFirst and probeMost bound the waits between two probes of a suspect
	// server, and probeTimeout each of them.
	probeFirst   = 100 * time.Millisecond
	probeMost    = 2 * time.Second
	probeTimeout = time.Second
)

// probe asks a suspect server, one block at a time, until it answers as others do,
// or refuses. It reads what was late, since a server whose device hangs still
// answers pings.
func (s *shardServers) probe(t target, device layout.DeviceID, shard frame.ShardRef, at frame.ReadRange) {
	at.Length = layout.BlockSize
	s.work.start(func() {
		ctx := s.cell.life
		told := limper{cell: s.cell, device: device}
		defer told.over()
		for wait := probeFirst; ; wait = min(2*wait, probeMost) {
			pause(ctx, wait)
			if ctx.Err() != nil || !s.pace.suspect(t.server) {
				return
			}
			told.tell(s.pace.limping(t.server, time.Now()))
			body := frame.ReadBody{Shard: shard, Ranges: []frame.ReadRange{at}}
			call := &transport.Call{Request: frame.Request{Kind: frame.Read, Flags: frame.NoCRCs, Class: layout.ClassInference},
				Meta: body.AppendTo(nil), Into: [][]byte{make([]byte, layout.BlockSize)}}
			begun := time.Now()
			kind := errs.KindOf(s.doWithin(ctx, probeTimeout, t, call))
			if kind == errs.Deadline || ctx.Err() != nil {
				continue
			}
			now := time.Now()
			if s.pace.probed(t.server, now.Sub(begun), now) {
				return
			}
			wait = probeFirst / 2
		}
	})
}

// limper tells the metadata service of a device that limps, or answers nothing, as
// long as it does.
type limper struct {
	cell   *Cell
	device layout.DeviceID
	at     time.Time // of the last word; zero: none was said
}

// tell says that reads take so long, now and then.
func (l *limper) tell(took, others time.Duration, limps bool) {
	if now := time.Now(); limps && now.Sub(l.at) >= limpsAgain {
		l.at = now
		l.cell.reports.addDevice(l.cell, &pb.DeviceReport{Device: uint64(l.device), TookNs: uint64(took), OthersNs: uint64(others)})
	}
}

// over takes back what was said.
func (l *limper) over() {
	if !l.at.IsZero() {
		l.cell.reports.addDevice(l.cell, &pb.DeviceReport{Device: uint64(l.device), Sound: true})
	}
}
