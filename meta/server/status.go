package server

import (
	"context"
	"fmt"

	"strake/meta/state"
	"strake/proto/pb"
)

// maxProblems bounds the sentences of a status.
const maxProblems = 64

// Status implements pb.MetaServer.
func (s *Server) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	counts, health := view.Counts(), view.Health(s.alive.present)
	r := &pb.StatusReply{
		Cell: uint64(view.Cell().ID), ShardLength: uint64(view.Cell().ShardLength), AppliedIndex: view.Applied(),
		Volumes: uint64(counts.Volumes), Segments: uint64(counts.Segments),
		SegmentsDegraded: uint64(health.Degraded), SegmentsAtRisk: uint64(health.AtRisk), SegmentsLost: uint64(health.Lost),
		UnsealedWithoutWriter: uint64(counts.UnsealedWithoutWriter),
	}
	for _, m := range s.replica.Members() {
		r.Members = append(r.Members, &pb.Member{Address: m.Address, Leader: m.Leader, Voter: m.Voter, Reachable: m.Reachable, Lag: m.Lag})
	}
	s.countServers(view, r)
	r.Problems = s.problems(view, r)
	return r, nil
}

// countServers fills in servers and bytes, with the newest figures.
func (s *Server) countServers(view *state.View, r *pb.StatusReply) {
	for _, srv := range view.Servers() {
		if srv.Up && s.alive.up(srv.ID) {
			r.ServersUp++
		} else {
			r.ServersDown++
		}
	}
	for _, d := range view.Devices() {
		said, ok := s.alive.figures(d.ID)
		if ok {
			d.Total, d.Used, d.Reserved = said.Total, said.Used, said.Reserved
		}
		if d.State == state.DeviceDead {
			continue
		}
		r.TotalBytes += d.Total
		r.UsedBytes += d.Used
		r.ReservedBytes += d.Reserved
		r.OtherBytes += said.other
	}
}

// problems gives a sentence for each thing that an operator should look at, the
// worst first.
func (s *Server) problems(view *state.View, r *pb.StatusReply) []string {
	var list []string
	add := func(format string, args ...any) {
		if len(list) < maxProblems {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	if r.SegmentsLost > 0 {
		add("%d segments have lost more shards than their parity covers; bring their servers back", r.SegmentsLost)
	}
	if r.SegmentsAtRisk > 0 {
		add("%d segments can lose no more shard", r.SegmentsAtRisk)
	}
	s.lackOfRoom(view, add)
	s.stuckVolumes(view, add)
	for _, m := range r.Members {
		if !m.Reachable {
			add("metadata server %s does not answer", m.Address)
		} else if !m.Voter {
			add("metadata server %s has no vote yet: it is %d entries behind", m.Address, m.Lag)
		}
	}
	for _, srv := range view.Servers() {
		switch {
		case !srv.Up || !s.alive.present(srv.ID):
			add("chunk server %d at %s is down", srv.ID, srv.ControlAddress)
		case !s.alive.up(srv.ID):
			add("chunk server %d at %s was not heard by the new leader yet", srv.ID, srv.ControlAddress)
		}
	}
	for _, d := range view.Devices() {
		if text := s.alive.rival(d.ID); text != "" {
			add("%s", text)
		}
		if d.State == state.DeviceLimping {
			_, why := s.control.limps(&d)
			add("device %d of server %d limps and gets no new segments: %s", d.ID, d.Server, why)
		}
		if d.State == state.DeviceDown || d.State == state.DeviceDead {
			add("device %d of server %d is %s", d.ID, d.Server, d.State)
		}
	}
	if n := s.reports.count(); n > 0 {
		add("clients and scrubs found %d shards missing or corrupt since this server leads", n)
	}
	if r.SegmentsDegraded > r.SegmentsAtRisk+r.SegmentsLost {
		add("%d segments miss a shard", r.SegmentsDegraded)
	}
	return list
}

// stuckVolumes names volumes whose recovery can't decide.
func (s *Server) stuckVolumes(view *state.View, add func(string, ...any)) {
	page, _ := view.Unrecovered(0, maxProblems)
	for _, v := range page {
		if v.Undecided != "" {
			add("volume %s/%s can't be recovered: %s", v.Tenant, v.Name, v.Undecided)
		}
	}
}
