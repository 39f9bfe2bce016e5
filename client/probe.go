package client

import (
	"time"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

const (
	// probeFirst and probeMost bound the waits between two probes of a suspect
	// server, and probeTimeout each of them.
	probeFirst   = 100 * time.Millisecond
	probeMost    = 2 * time.Second
	probeTimeout = time.Second
)

// probe asks a suspect server, one block at a time, until it answers as others do,
// or refuses. It reads what was late, since a server whose device hangs still
// answers pings.
func (s *shardServers) probe(t target, shard frame.ShardRef, at frame.ReadRange) {
	at.Length = layout.BlockSize
	s.work.start(func() {
		ctx := s.cell.life
		for wait := probeFirst; ; wait = min(2*wait, probeMost) {
			pause(ctx, wait)
			if ctx.Err() != nil || !s.pace.suspect(t.server) {
				return
			}
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
