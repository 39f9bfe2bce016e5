package state

import (
	"fmt"
	"math/rand"
	"slices"

	"strake/internal/layout"
)

// possibleSeal makes a seal that fits: parity and one data shard hold the whole
// list of n stripes from first on, the other data shards random parts of it.
func possibleSeal(rnd *rand.Rand, s *Segment, first layout.Seq, n uint32) Seal {
	seal := Seal{Segment: s.ID, Shards: make([]ShardSeal, s.Geometry.Shards())}
	if n == 0 {
		return seal
	}
	seal.First, seal.Last, seal.Count = first, first+layout.Seq(n)-1, n
	whole := ShardSeal{Count: n, Length: min(layout.ShardOffset(n)*layout.BlockSize, s.ShardLength)}
	rnd.Read(whole.Digest[:])
	for i := range seal.Shards {
		seal.Shards[i] = whole
		if i == 0 || i >= int(s.Geometry.K) {
			continue
		}
		part := ShardSeal{Count: uint32(rnd.Intn(int(n)))}
		if part.Count > 0 {
			part.Length = layout.ShardOffset(part.Count) * layout.BlockSize
			rnd.Read(part.Digest[:])
		}
		seal.Shards[i] = part
	}
	return seal
}

// commander draws commands that are mostly possible and sometimes not.
type commander struct {
	rnd *rand.Rand
	id  CommandID
}

func (g *commander) next(v *View) Command {
	g.id++
	if v.Cell().ID == 0 {
		return FormCell{Cell: 7}
	}
	if len(v.Servers()) < 4 {
		return g.register(v)
	}
	if len(v.Sessions()) == 0 || g.rnd.Intn(25) == 0 {
		return OpenSession{ID: g.id, Owner: "somebody"}
	}
	page, _ := v.Volumes("", "", 0)
	if len(page) < 2 || g.rnd.Intn(40) == 0 {
		return CreateVolume{ID: g.id, Name: fmt.Sprintf("v%d", g.rnd.Intn(6)), SizeBytes: 1 << 20, Geometry: layout.Geometry{K: uint8(1 + g.rnd.Intn(2)), M: 1}}
	}
	if g.rnd.Intn(4) == 0 {
		return g.leader(v)
	}
	if g.rnd.Intn(12) == 0 {
		return g.qos(v)
	}
	return g.client(v, page[g.rnd.Intn(len(page))])
}

// qos draws changes of classes and reservations.
func (g *commander) qos(v *View) Command {
	classes := v.Classes()
	c, job := classes[g.rnd.Intn(len(classes))], fmt.Sprintf("job-%d", g.rnd.Intn(4))
	switch g.rnd.Intn(6) {
	case 0:
		return SetClass{ID: g.id, Add: true, Class: ClassRecord{Name: fmt.Sprintf("c%d", g.rnd.Intn(4)), Weight: 50}}
	case 1:
		seen := c.Changed
		c.Weight, c.ReservedOps, c.Changed = int64(g.rnd.Intn(200)), int64(g.rnd.Intn(60)), 0
		return SetClass{ID: g.id, Class: c, Seen: seen, CapacityBytes: 100, CapacityOps: 100}
	case 2:
		return RemoveClass{ID: g.id, Name: c.Name}
	case 3:
		return RenewReservation{ID: g.id, Job: job}
	case 4:
		return EndReservation{Job: job}
	}
	return Reserve{Reservation: Reservation{Job: job, Class: c.Number, Bytes: int64(1 + g.rnd.Intn(60)), TTLNs: 1e9}, CapacityBytes: 100, CapacityOps: 100, Joint: true}
}

func (g *commander) register(v *View) Command {
	n := byte(1 + g.rnd.Intn(5))
	inc := layout.Incarnation(1 + v.Applied())
	if g.rnd.Intn(10) == 0 {
		inc = 1
	}
	c := RegisterServer{UUID: layout.UUID{n}, DataAddress: "d", ControlAddress: "c", Domain: fmt.Sprintf("z/r/h%d", n)}
	for i := byte(0); i < 2; i++ {
		c.Devices = append(c.Devices, DeviceReport{UUID: layout.UUID{n, i + 1}, Total: 1 << 30, Incarnation: inc})
	}
	return c
}

func (g *commander) session(v *View) layout.SessionID {
	all := v.Sessions()
	return all[g.rnd.Intn(len(all))].ID
}

func (g *commander) epoch(vol Volume) layout.Epoch {
	if g.rnd.Intn(12) == 0 && vol.Epoch > 0 {
		return vol.Epoch - 1
	}
	return vol.Epoch
}

func (g *commander) client(v *View, vol Volume) Command {
	ref := VolumeRef{ID: vol.ID}
	unsealed, _ := v.Unsealed(vol.ID, 0, 0)
	if g.rnd.Intn(6) == 0 {
		return g.freeze(v, vol)
	}
	if vol.Holder == 0 && g.rnd.Intn(3) > 0 {
		return AcquireLease{ID: g.id, Session: g.session(v), Volume: ref}
	}
	switch n := g.rnd.Intn(22); {
	case n < 5:
		return g.allocate(v, vol)
	case n < 10 && len(unsealed) > 0:
		return g.seal(vol, unsealed)
	case n < 13 && !vol.Closed:
		return g.close(vol, unsealed)
	case n < 16:
		return g.root(v, vol, unsealed)
	case n < 17:
		return AcquireLease{ID: g.id, Session: g.session(v), Volume: ref, Force: g.rnd.Intn(2) == 0}
	case n < 18:
		return ReleaseLease{Session: vol.Holder, Volume: vol.ID, Epoch: g.epoch(vol), LastSeq: vol.LastSeq}
	case n < 19:
		return ResizeVolume{ID: g.id, Volume: ref, SizeBytes: uint64(1+g.rnd.Intn(64)) << 20, Shrink: g.rnd.Intn(2) == 0, Session: vol.Holder, Epoch: vol.Epoch}
	}
	return RemoveVolume{ID: g.id, Volume: ref, Now: g.rnd.Intn(2) == 0, AtUnix: 99}
}

// freeze draws a command about snapshots.
func (g *commander) freeze(v *View, vol Volume) Command {
	ref := VolumeRef{ID: vol.ID}
	name := fmt.Sprintf("s%d", g.rnd.Intn(8))
	list, _ := v.Snapshots(vol.family(), 0, 0)
	if len(list) > 0 && g.rnd.Intn(3) > 0 {
		name = list[g.rnd.Intn(len(list))].Name
	}
	switch g.rnd.Intn(14) {
	case 0, 1, 2, 3:
		return CreateSnapshots{ID: g.id, Items: []SnapshotItem{{Volume: ref, Name: fmt.Sprintf("s%d", g.rnd.Intn(8)), Epoch: vol.Epoch, Seq: vol.LastSeq}}, Tag: g.rnd.Intn(2) == 0}
	case 4, 5, 6:
		return RemoveSnapshot{ID: g.id, Volume: ref, Name: name}
	case 7:
		if g.rnd.Intn(3) == 0 {
			return FlattenVolume{ID: g.id, Volume: ref, Stop: g.rnd.Intn(4) == 0}
		}
		return CloneVolume{ID: g.id, Volume: ref, Snapshot: name, Name: fmt.Sprintf("v%d", g.rnd.Intn(6))}
	case 8:
		return RollbackVolume{ID: g.id, Volume: ref, Snapshot: name}
	case 9:
		return PinSnapshot{Session: g.session(v), Volume: ref, Name: name}
	case 10:
		if s := v.Sessions()[g.rnd.Intn(len(v.Sessions()))]; len(s.Pins) > 0 {
			return UnpinSnapshot{Session: s.ID, Snapshot: s.Pins[0]}
		}
		return FreeSegments{Volume: vol.ID}
	case 11:
		return HoldTag{Volume: ref, Name: name, By: "me", Release: g.rnd.Intn(2) == 0}
	case 12:
		return MarkTagReady{Snapshot: layout.SnapshotID(1 + g.rnd.Intn(8)), Digest: make([]byte, DigestBytes), Blocks: uint64(g.rnd.Intn(2))}
	}
	return FreeSegments{Volume: vol.ID}
}

func (g *commander) allocate(v *View, vol Volume) Command {
	c := AllocateSegments{ID: g.id, Session: vol.Holder, Volume: vol.ID, Epoch: g.epoch(vol), Map: g.rnd.Intn(4) == 0, Count: 2}
	servers := slices.DeleteFunc(v.Servers(), func(s Server) bool { return len(s.Devices) == 0 })
	for range 2 {
		p := PlacedSegment{Geometry: vol.Geometry, ShardLength: 4 << 20}
		for _, i := range g.rnd.Perm(len(servers))[:min(vol.Geometry.Shards(), len(servers))] {
			p.Devices = append(p.Devices, servers[i].Devices[g.rnd.Intn(len(servers[i].Devices))])
		}
		c.Placed = append(c.Placed, p)
	}
	return c
}

func (g *commander) seal(vol Volume, unsealed []Segment) Command {
	s := unsealed[g.rnd.Intn(len(unsealed))]
	return SealSegments{Volume: vol.ID, Epoch: g.epoch(vol), Seals: []Seal{possibleSeal(g.rnd, &s, vol.LastSeq+1, uint32(g.rnd.Intn(4)))}}
}

func (g *commander) close(vol Volume, unsealed []Segment) Command {
	if g.rnd.Intn(4) == 0 {
		return CloseEpoch{Volume: vol.ID, Epoch: vol.Epoch, Undecided: "server 3 is silent"}
	}
	c := CloseEpoch{Volume: vol.ID, Epoch: g.epoch(vol), Cut: vol.LastSeq}
	for i := range unsealed {
		if s := &unsealed[i]; s.Epoch < vol.Epoch && g.rnd.Intn(20) > 0 {
			seal := possibleSeal(g.rnd, s, c.Cut+1, uint32(g.rnd.Intn(3)))
			c.Cut = max(c.Cut, seal.Last)
			c.Seals = append(c.Seals, seal)
		}
	}
	return c
}

func (g *commander) root(v *View, vol Volume, unsealed []Segment) Command {
	c := RecordRoot{Flat: g.rnd.Intn(3) == 0, Volume: vol.ID, Epoch: g.epoch(vol), Root: Root{Number: vol.Root.Number + 1, Covers: vol.LastSeq, Page: []byte{1, 2, byte(g.id)}}}
	for i := range unsealed {
		if s := &unsealed[i]; s.Map && s.State == Open {
			c.MapLists = append(c.MapLists, possibleSeal(g.rnd, s, 1, s.Seal.Count+uint32(g.rnd.Intn(2))))
		}
	}
	page, _ := v.SegmentsOfVolume(vol.ID, 0, 0)
	for _, s := range page {
		if s.State < Sealed || g.rnd.Intn(3) > 0 {
			continue
		}
		if s.Map {
			c.RetiredMap = append(c.RetiredMap, s.ID)
		} else {
			c.Retired = append(c.Retired, s.ID)
		}
	}
	return c
}

// leader draws the commands that the leader sends by itself.
func (g *commander) leader(v *View) Command {
	ids := func(page []Segment, _ bool) (out []layout.SegmentID) {
		for _, s := range page {
			out = append(out, s.ID)
		}
		return append(out, layout.SegmentID(1+g.rnd.Intn(20)))[:1+g.rnd.Intn(len(out)+1)]
	}
	servers := v.Servers()
	server := servers[g.rnd.Intn(len(servers))]
	removed, _ := v.RemovedVolumes("", "", 0)
	switch g.rnd.Intn(17) {
	case 0, 1, 2, 3:
		return OpenSegments{Segments: ids(v.Allocated(0, 0))}
	case 4:
		return DropSegments{Segments: ids(v.Allocated(0, 0))}
	case 5, 6:
		return MarkFinalized{Segments: ids(v.Unfinalized(0, 0))}
	case 7, 8:
		return MarkDeleted{Segments: ids(v.Deletable(0, 0))}
	case 9:
		return SetServerState{Server: server.ID, Up: g.rnd.Intn(2) == 0, Registered: server.Registered}
	case 10:
		return ExpireSession{Session: g.session(v)}
	case 11, 16:
		if len(removed) > 0 && g.rnd.Intn(2) == 0 {
			return UndeleteVolume{ID: g.id, Volume: VolumeRef{ID: removed[0].ID}}
		}
		if len(removed) > 0 && g.rnd.Intn(2) == 0 {
			return PurgeVolume{Volume: removed[0].ID}
		}
		if purged, _ := v.Purged(0, 0); len(purged) > 0 {
			return MarkDeleted{Segments: ids(v.SegmentsOfVolume(purged[0].ID, 0, 0))}
		}
		return PurgeVolume{Volume: layout.VolumeID(1 + g.rnd.Intn(9))}
	case 12:
		return g.replace(v)
	case 13:
		return g.mark(v)
	case 14:
		return g.change(v, server)
	}
	return g.register(v)
}

func (g *commander) mark(v *View) Command {
	page, _ := v.SegmentsOnDevice(layout.DeviceID(1+g.rnd.Intn(6)), 0, 0)
	if len(page) == 0 {
		return RemoveServer{Server: layout.ServerID(1 + g.rnd.Intn(8))}
	}
	if d := v.Devices()[0]; g.rnd.Intn(4) == 0 {
		return UpdateDevices{Devices: []DeviceUpdate{{Device: d.ID, Total: 1 << 30, State: DeviceState(g.rnd.Intn(3))}}}
	}
	s := page[g.rnd.Intn(len(page))]
	shard := g.rnd.Intn(len(s.Placements))
	list := []ShardAt{{Segment: s.ID, Shard: layout.ShardIndex(shard), Generation: s.Placements[shard].Generation}}
	if g.rnd.Intn(3) == 0 {
		return MarkSound{Shards: list}
	}
	return MarkLost{Shards: list}
}

func (g *commander) change(v *View, server Server) Command {
	c := ChangeDevices{Change: DeviceChange(1 + g.rnd.Intn(4)), Registered: server.Registered}
	if len(server.Devices) > 0 {
		c.Devices = append(c.Devices, server.Devices[g.rnd.Intn(len(server.Devices))])
	}
	if c.Change == RemoveDevice && g.rnd.Intn(12) > 0 {
		c.Change = DrainDevice
	}
	return c
}

func (g *commander) replace(v *View) Command {
	devices := v.Devices()
	d := devices[g.rnd.Intn(len(devices))].ID
	page, _ := v.SegmentsOnDevice(d, 0, 0)
	if len(page) == 0 {
		return UpdateDevices{Devices: []DeviceUpdate{{Device: d, Total: 1 << 30, State: DeviceState(g.rnd.Intn(3))}}}
	}
	s := page[g.rnd.Intn(len(page))]
	shard := g.rnd.Intn(len(s.Placements))
	return ReplaceShard{Segment: s.ID, Shard: layout.ShardIndex(shard), Generation: s.Placements[shard].Generation, Device: devices[g.rnd.Intn(len(devices))].ID}
}
