package server

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// keptEvents bounds the events that are remembered.
const keptEvents = 4096

// journal remembers what happened lately, for people. It is soft: a new leader
// begins an empty one.
type journal struct {
	mu     sync.Mutex
	last   uint64      // guarded by mu
	events []*pb.Event // guarded by mu; oldest first
}

func (j *journal) add(name, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.events = append(j.events, &pb.Event{Id: j.last, AtUnixMs: uint64(time.Now().UnixMilli()), Name: name, Text: text})
	if len(j.events) > 2*keptEvents {
		j.events = append([]*pb.Event(nil), j.events[len(j.events)-keptEvents:]...)
	}
}

// after gives up to most events after an id.
func (j *journal) after(id uint64, most int) []*pb.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.events
	for len(list) > 0 && list[0].Id <= id {
		list = list[1:]
	}
	if id == 0 { // the newest
		list = list[max(0, len(list)-most):]
	}
	return append([]*pb.Event(nil), list[:min(most, len(list))]...)
}

// noted takes an event into the journal and drops what it settles.
func (s *Server) noted(e state.Event) {
	switch e := e.(type) {
	case state.ShardReplaced:
		s.reports.forget(e.Shard)
	case state.ShardRepaired:
		s.reports.forget(e.Shard)
	case state.SegmentAllocated, state.SegmentOpened, state.SegmentDropped, state.SegmentSealed, state.SegmentFinalized,
		state.SegmentRetired, state.SegmentDeleted, state.RootRecorded, state.SessionOpened, state.SessionEnded, state.ReservationRenewed:
		return // too many to be of use to people
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "state.")
	view := s.machine.View()
	s.journal.add(apart(name, '-'), told(e, func(id layout.VolumeID) string {
		v, err := view.Resolve(state.VolumeRef{ID: id})
		if err != nil {
			return ""
		}
		return layout.VolumeName{Tenant: v.Tenant, Volume: v.Name}.String()
	}))
}

// told makes the fields of an event a line for people: what is zero is left out, and
// volumes have their names where they still have one.
func told(e state.Event, volume func(layout.VolumeID) string) string {
	var parts []string
	var tell func(string, reflect.Value)
	tell = func(name string, v reflect.Value) {
		switch value := v.Interface().(type) {
		case bool:
			if value {
				parts = append(parts, name)
			}
			return
		case layout.VolumeID:
			if n := volume(value); n != "" {
				parts = append(parts, fmt.Sprintf("%s %d (%s)", name, value, n))
				return
			}
		}
		_, speaks := v.Interface().(fmt.Stringer)
		switch {
		case v.IsZero() && !speaks:
		case v.Kind() == reflect.Struct && !speaks:
			for i := range v.NumField() {
				tell(strings.TrimSpace(name+" "+apart(v.Type().Field(i).Name, ' ')), v.Field(i))
			}
		default:
			parts = append(parts, fmt.Sprintf("%s %v", name, v.Interface()))
		}
	}
	tell("", reflect.ValueOf(e))
	return strings.Join(parts, ", ")
}

// apart makes ServerWentDown server-went-down, with any sign in between.
func apart(name string, sign rune) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteRune(sign)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// ListEvents implements pb.MetaServer.
func (s *Server) ListEvents(_ context.Context, r *pb.ListEventsRequest) (*pb.ListEventsReply, error) {
	return &pb.ListEventsReply{Events: s.journal.after(r.GetAfter(), pageOf(r.GetMost()))}, nil
}
