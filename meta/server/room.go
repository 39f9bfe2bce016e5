package server

import (
	"slices"

	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/state"
)

// lackOfRoom names the geometries of which no new segment finds room, and the
// devices that are fuller than people like.
func (s *Server) lackOfRoom(view *state.View, add func(string, ...any)) {
	cluster := placement.Of(view, s.alive.present, s.figures)
	placer := placement.New(cluster)
	for _, g := range geometries(view) {
		if n, need := placer.Room(layout.ForData), int(g.M)+1; n < need {
			add("no new segment of %v finds room: %d of %d servers have some, %d are needed; writes are refused, delete data or add devices", g, n, placer.Servers(), need)
		}
	}
	for i := range cluster.Devices {
		d := &cluster.Devices[i]
		if d.State == state.DeviceDown || !d.Up {
			continue
		}
		switch free := d.Free(); {
		case free <= layout.ForData.Kept(d.Total):
			add("device %d of server %d is %d %% full and takes no new data", d.ID, d.Server, percent(d.Total-free, d.Total))
		case layout.Warn(d.Total-min(d.Total, d.Other), d.Used+d.Reserved):
			add("device %d of server %d is %d %% full", d.ID, d.Server, percent(d.Total-free, d.Total))
		}
	}
}

func percent(part, of uint64) uint64 { return part * 100 / max(1, of) }

// geometries are those of the cell's volumes, as far as one page of them tells.
func geometries(view *state.View) (list []layout.Geometry) {
	page, _ := view.Volumes("", "", state.MaxPage)
	for i := range page {
		if g := page[i].Geometry; !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	return list
}
