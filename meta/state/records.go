package state

import (
	"encoding/binary"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

// What Restore asks of each record before it puts it.

func (s *restorer) putCell(r *cellRecord) error {
	if s.counts[sectionCell] > 0 {
		return corrupt("two cell records")
	}
	if r.Cell.ID != 0 && checkShardLength("restore", r.Cell.ShardLength) != nil {
		return corrupt("cell with shards of %d bytes", r.Cell.ShardLength)
	}
	s.t.cell, s.t.last, s.t.applied = r.Cell, r.Last, r.Applied
	s.t.classes, s.t.reservations, s.t.qosChanged = r.Classes, r.Reservations, r.QoSChanged
	return errs.As(checkQoS(s.t), errs.Corrupt, "restore snapshot")
}

func (s *restorer) putServer(r *Server) error {
	last, _, _ := s.t.servers.Max()
	if r.ID <= last || r.ID > s.t.last.Server || s.t.serverTaken(r.UUID) {
		return corrupt("server %d after %d", r.ID, last)
	}
	s.t.putServer(r)
	return nil
}

func (t *tables) serverTaken(u layout.UUID) bool {
	_, ok := t.serverByUUID.Get(string(u[:]))
	return ok
}
func (t *tables) deviceTaken(u layout.UUID) bool {
	_, ok := t.deviceByUUID.Get(string(u[:]))
	return ok
}

func (s *restorer) putDevice(r *Device) error {
	last, _, _ := s.t.devices.Max()
	owner, ok := s.t.servers.Get(r.Server)
	if r.ID <= last || r.ID > s.t.last.Device || s.t.deviceTaken(r.UUID) || !ok || r.State > DeviceDead || !slices.Contains(owner.Devices, r.ID) {
		return corrupt("device %d of server %d after device %d", r.ID, r.Server, last)
	}
	s.t.putDevice(r)
	return nil
}

func (s *restorer) putSession(r *Session) error {
	if last, _, _ := s.t.sessions.Max(); r.ID <= last || r.ID > s.t.last.Session {
		return corrupt("session %d after %d", r.ID, last)
	}
	s.t.putSession(r)
	return nil
}

func (s *restorer) putVolume(r *Volume) error {
	_, held := s.t.sessions.Get(r.Holder)
	if r.ID <= s.lastVolume || r.ID > s.t.last.Volume || r.Holder != 0 && !held || r.check() != nil {
		return corrupt("volume %d after %d", r.ID, s.lastVolume)
	}
	if _, taken := s.t.names.Get(nameKey(r.Tenant, r.Name)); taken && !r.Removed {
		return corrupt("two volumes called %s", r.path())
	}
	s.lastVolume = r.ID
	s.volumes[r.ID] = r
	s.t.putVolume(r) // its figures come with its segments
	return nil
}

func (s *restorer) putSegment(b []byte) (rest []byte, err error) {
	id, n := binary.Uvarint(b)
	size, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 || size > uint64(len(b)-n-m) || layout.SegmentID(id) <= s.lastSegment || layout.SegmentID(id) > s.t.last.Segment {
		return nil, corrupt("segment %d of %d bytes after %d", id, size, s.lastSegment)
	}
	if n != len(binary.AppendUvarint(nil, id)) || m != len(binary.AppendUvarint(nil, size)) {
		return nil, corrupt("segment %d: a number is longer than it need be", id)
	}
	end := n + m + int(size)
	seg, err := unpack(layout.SegmentID(id), string(b[n+m:end]))
	if err != nil {
		return nil, err
	}
	v := s.volumes[seg.Volume]
	if v == nil || v.checkSegment(seg) != nil {
		return nil, corrupt("segment %d does not belong to volume %d", id, seg.Volume)
	}
	for _, p := range seg.Placements {
		if _, ok := s.t.devices.Get(p.Device); !ok {
			return nil, corrupt("segment %d on device %d, which is not there", id, p.Device)
		}
	}
	s.lastSegment = seg.ID
	s.t.putSegment(seg, v)
	return b[end:], nil
}

func (s *restorer) putRecent(r *remembered) error {
	last, _, _ := s.t.recentOrder.Max()
	_, twice := s.t.recent.Get(r.ID)
	if r.Index <= last || r.Index > s.t.applied || r.ID == 0 || twice || s.t.recent.Len() == MaxRecent {
		return corrupt("remembered command %d at index %d after %d", r.ID, r.Index, last)
	}
	s.t.putRemembered(r)
	return nil
}

// putFrozen: the volumes that stand on snapshots came before; checkFrozen looks
// at them when all are in.
func (s *restorer) putFrozen(r *Frozen) error {
	last, _, _ := s.t.frozen.Max()
	v := s.volumes[r.Volume]
	if r.ID <= last || r.ID > s.t.last.Snapshot || v == nil || r.check() != nil {
		return corrupt("snapshot %d of volume %d after %d", r.ID, r.Volume, last)
	}
	if _, taken := s.t.frozenNames.Get(frozenKey(r.Family, r.Name)); taken && !r.Removed {
		return corrupt("two snapshots of volume %d called %s", r.Family, r.Name)
	}
	s.t.putFrozen(r)
	return nil
}

// endOld reads the end of version 1.
func (s *restorer) endOld(counts *[sectionEnd]uint64) error {
	all := [sections]uint64{}
	copy(all[:], counts[:])
	return s.end(&all)
}

func (s *restorer) end(counts *[sections]uint64) error {
	if *counts != s.counts {
		return corrupt("records are missing: %v of %v", s.counts, *counts)
	}
	return nil
}

// putVolumes files the volumes again, with the figures of their segments.
func (s *restorer) putVolumes() {
	s.t.volumes.Copy().Scan(func(id layout.VolumeID, _ *Volume) bool {
		s.t.putVolume(s.volumes[id])
		return true
	})
}
