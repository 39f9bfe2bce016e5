package state

import "strake/internal/layout"

// Counts are cell-wide figures.
type Counts struct {
	Servers, ServersUp                   int
	Volumes                              int // removed ones not counted
	Segments                             int // dropped ones not counted
	TotalBytes, UsedBytes, ReservedBytes uint64
	UnsealedWithoutWriter                int // segments
}

// Counts adds up the cell's figures, in the time of its servers, devices and
// unrecovered volumes.
func (v *View) Counts() Counts {
	c := Counts{Servers: v.t.servers.Len(), Volumes: v.t.names.Len(), Segments: v.t.segments.Len() - v.t.dropped}
	v.t.servers.Scan(func(_ layout.ServerID, s *Server) bool {
		if s.Up {
			c.ServersUp++
		}
		return true
	})
	v.t.devices.Scan(func(_ layout.DeviceID, d *Device) bool {
		if d.State != DeviceDead {
			c.TotalBytes += d.Total
			c.UsedBytes += d.Used
			c.ReservedBytes += d.Reserved
		}
		return true
	})
	v.t.orphaned.ascend(all, 0, func(id uint64) bool {
		vol, _ := v.t.volumes.Get(layout.VolumeID(id))
		c.UnsealedWithoutWriter += int(vol.Unsealed)
		return true
	})
	return c
}

// Health counts segments by the shards that they miss.
type Health struct {
	Degraded int // at least one shard missing
	AtRisk   int // no shard more may be lost; counted as degraded too
	Lost     int // more than m shards missing; counted as degraded too
}

// Health counts the segments that hold data by the shards they miss: those on
// servers that are not up by the predicate, on devices that are down or dead,
// and those marked lost. It takes the time of the segments on such devices.
func (v *View) Health(up func(layout.ServerID) bool) Health {
	missing := make(map[layout.SegmentID]uint8)
	v.t.devices.Scan(func(id layout.DeviceID, d *Device) bool {
		if d.State != DeviceDown && d.State != DeviceDead && up(d.Server) {
			return true
		}
		v.t.byDevice.ascend(uint64(id), 0, func(s uint64) bool { missing[layout.SegmentID(s)]++; return true })
		return true
	})
	v.t.lost.ascend(all, 0, func(id uint64) bool {
		s := v.t.segment(layout.SegmentID(id))
		for m := s.Lost; m != 0; m &= m - 1 {
			i, _ := m.Nth(0)
			if d, _ := v.t.devices.Get(s.Placements[i].Device); d.State != DeviceDown && d.State != DeviceDead && up(d.Server) {
				missing[s.ID]++
			}
		}
		return true
	})
	var h Health
	for id, n := range missing { // sums only: the order does not matter
		s := v.t.segment(id)
		if vol, _ := v.t.volumes.Get(s.Volume); s.State == Dropped || vol.Purged {
			continue
		}
		h.Degraded++
		switch m := s.Geometry.M; {
		case n == m:
			h.AtRisk++
		case n > m:
			h.Lost++
		}
	}
	return h
}
