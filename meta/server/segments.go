package server

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

const maxSegmentIDs = 1024

// GetSegments implements pb.MetaServer. Segments that are gone are left out.
func (s *Server) GetSegments(ctx context.Context, r *pb.GetSegmentsRequest) (*pb.GetSegmentsReply, error) {
	if len(r.GetIds()) > maxSegmentIDs {
		return nil, errs.New(errs.TooLarge, "get segments", "%d ids, at most %d", len(r.GetIds()), maxSegmentIDs)
	}
	if _, err := s.fresh(ctx); err != nil {
		return nil, err
	}
	var list []state.Segment
	view := s.readable(ctx, func(v *state.View) []state.Segment {
		list = list[:0]
		for _, id := range r.GetIds() {
			if seg, ok := v.Segment(layout.SegmentID(id)); ok {
				list = append(list, seg)
			}
		}
		return list
	})
	reply := &pb.GetSegmentsReply{}
	reply.Segments, reply.Servers = s.located(view, list)
	return reply, nil
}

// ListSegments implements pb.MetaServer.
func (s *Server) ListSegments(ctx context.Context, r *pb.ListSegmentsRequest) (*pb.ListSegmentsReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	id := layout.VolumeID(r.GetVolume())
	if _, ok := view.Volume(id); !ok {
		return nil, errs.New(errs.NotFound, "list segments", "volume %d does not exist", id)
	}
	page, more := view.SegmentsOfVolume(id, layout.SegmentID(r.GetAfter()), pageOf(r.GetMost()))
	reply := &pb.ListSegmentsReply{More: more}
	reply.Segments, reply.Servers = s.located(view, page)
	return reply, nil
}

// holds refuses a session that is not the volume's writer under the epoch.
func holds(v *state.Volume, session sessionID, epoch layout.Epoch) error {
	switch {
	case epoch != v.Epoch:
		return errs.New(errs.StaleEpoch, "", "volume %d is written under epoch %d, not %d", v.ID, v.Epoch, epoch)
	case session != v.Holder:
		return errs.New(errs.LeaseLost, "", "session %d does not hold volume %d", session, v.ID)
	}
	return nil
}
