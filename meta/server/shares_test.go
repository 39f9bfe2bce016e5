package server

import (
	"testing"

	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/pb"
)

// limited is training's limit for the whole cell, and what a tenant reserved in it.
func limited(bytes int64) []claim {
	return []claim{{claimant{layout.ClassTraining, 0}, part{limit: qos.Rate{Bytes: bytes}}}, {claimant{layout.ClassTraining, 7}, part{reservation: qos.Rate{Ops: 60}}}, {claimant: claimant{class: layout.ClassInference}}}
}

// demand has a device say what training asks of it and gets.
func (s *shares) demand(d layout.DeviceID, wanted, served int64) {
	s.heard([]layout.DeviceID{d}, &pb.HeartbeatRequest{Demands: []*pb.ClassDemand{
		{Device: uint64(d), Class: uint32(layout.ClassTraining), Wanted: &pb.Rate{Bytes: wanted}, Served: &pb.Rate{Bytes: served}},
		{Device: 99, Class: uint32(layout.ClassTraining), Wanted: &pb.Rate{Bytes: 1 << 40}, Served: &pb.Rate{Bytes: 1 << 40}}, // not its own
		{Device: uint64(d), Class: 300},
	}})
}

func (s *shares) limits(devices ...layout.DeviceID) (list []int64) {
	for _, d := range devices {
		for _, p := range s.of([]layout.DeviceID{d}) {
			if p.Tenant == 0 {
				list = append(list, p.Limit.Bytes)
			}
		}
	}
	return list
}

// TestPartsFollowDemandAndStayWhereTheyHardlyMove: they always add up to what the class
// has, and a device that is gone leaves its part, and what its class got, to others.
func TestPartsFollowDemandAndStayWhereTheyHardlyMove(t *testing.T) {
	s := newShares()
	if s.knows([]layout.DeviceID{1}) {
		t.Error("a division that never was included a device")
	}
	all := []layout.DeviceID{1, 2, 3}
	s.divide(limited(3000), all)
	if got := s.limits(all...); len(got) != 3 || got[0] != 1000 || got[2] != 1000 || !s.knows(all) || s.knows([]layout.DeviceID{1, 4}) {
		t.Fatalf("while nobody asks: %v", got)
	}
	s.demand(1, 2000, 900)
	s.demand(2, 100, 100)
	s.divide(limited(3000), all)
	moved := s.limits(all...)
	if sum := moved[0] + moved[1] + moved[2]; sum != 3000 || moved[0] < 2500 || moved[1] > 400 {
		t.Errorf("by demand: %v", moved)
	}
	s.demand(1, 2050, 900)
	s.demand(2, 101, 100)
	s.divide(limited(3000), all)
	if still := s.limits(all...); still[0] != moved[0] || still[1] != moved[1] {
		t.Errorf("nearly the same demand moved %v to %v", moved, still)
	}
	s.divide(limited(1500), all)
	if now := s.limits(all...); now[0]+now[1]+now[2] != 1500 {
		t.Errorf("half of the limit: %v", now)
	}
	if s.servedOf(layout.ClassTraining, 0).Bytes < 500 {
		t.Errorf("it gets %v", s.servedOf(layout.ClassTraining, 0))
	}
	s.divide(limited(1500), all[1:])
	if now := s.limits(all[1:]...); len(s.limits(1)) != 0 || now[0]+now[1] != 1500 || s.servedOf(layout.ClassTraining, 0).Bytes > 100 {
		t.Errorf("without the first device: %v, served %v", now, s.servedOf(layout.ClassTraining, 0))
	}
}

// TestATenantsPartsFollowItsOwnDemand, whatever others of its class ask for.
func TestATenantsPartsFollowItsOwnDemand(t *testing.T) {
	s, all := newShares(), []layout.DeviceID{1, 2, 3}
	s.demand(1, 1<<30, 1<<30)
	s.heard(all[2:], &pb.HeartbeatRequest{Demands: []*pb.ClassDemand{{Device: 3, Class: uint32(layout.ClassTraining), Tenant: 7, Wanted: &pb.Rate{Ops: 100}, Served: &pb.Rate{Ops: 50}}}})
	s.divide(limited(3000), all)
	got, sum := map[uint64]int64{}, int64(0)
	for _, p := range s.of(all) {
		if p.Tenant == 7 {
			got[p.Device] = p.Reservation.Ops
			sum += p.Reservation.Ops
		}
	}
	if len(got) != 3 || sum != 60 || got[3] < 50 {
		t.Errorf("its reservation of 60 is divided as %v", got)
	}
	if served := s.servedOf(layout.ClassTraining, 7); served.Ops != 25 || served.Bytes != 0 {
		t.Errorf("it gets %+v, half of 50 of the first heartbeat", served)
	}
}
