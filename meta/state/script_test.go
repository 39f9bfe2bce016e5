package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"strake/internal/errs"
	"strake/internal/layout"
)

// TestScripts runs the golden scripts in testdata. A line is a command and its
// arguments; ids are given as numbers, `id=` gives the command id (else the
// next free one), a seal is segment:first-last or segment:empty. The output is
// what Apply gave, one event a line. Every command is followed by Check.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{t: t, state: New(), nextID: 1000}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	t      *testing.T
	d      *datadriven.TestData
	state  *State
	nextID CommandID
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.t, s.d = t, d
	if out, ok := s.query(); ok {
		return out
	}
	r := s.state.Apply(s.state.View().Applied()+1, s.command())
	if err := s.state.View().Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return describe(r)
}

func (s *script) num(key string) uint64 {
	text := s.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		s.t.Fatalf("%s: %s=%q: %v", s.d.Pos, key, text, err)
	}
	return n
}

func (s *script) text(key string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

func (s *script) flag(key string) bool { return s.d.HasArg(key) }

func (s *script) nums(key string) (out []uint64) {
	for _, a := range s.d.CmdArgs {
		if a.Key != key {
			continue
		}
		for _, v := range a.Vals {
			n, err := strconv.ParseUint(v, 0, 64)
			if err != nil {
				s.t.Fatalf("%s: %v", s.d.Pos, err)
			}
			out = append(out, n)
		}
	}
	return out
}

func (s *script) segments(key string) (out []layout.SegmentID) {
	for _, n := range s.nums(key) {
		out = append(out, layout.SegmentID(n))
	}
	return out
}

func (s *script) id() CommandID {
	if s.flag("id") {
		return CommandID(s.num("id"))
	}
	s.nextID++
	return s.nextID
}

func (s *script) ref() VolumeRef {
	if n, err := strconv.ParseUint(s.text("volume"), 10, 64); err == nil {
		return VolumeRef{ID: layout.VolumeID(n)}
	}
	return VolumeRef{Tenant: s.text("tenant"), Name: s.text("volume")}
}

func (s *script) volume() layout.VolumeID { return layout.VolumeID(s.num("volume")) }

func (s *script) geometry() (g layout.Geometry) {
	fmt.Sscanf(s.text("geometry"), "%d+%d", &g.K, &g.M)
	return g
}

// seals parses seal arguments; all shards hold all stripes, in units of 4 KiB.
func (s *script) seals(key string) (out []Seal) {
	for _, a := range s.d.CmdArgs {
		if a.Key != key {
			continue
		}
		for _, v := range a.Vals {
			var id layout.SegmentID
			var first, last layout.Seq
			fmt.Sscanf(v, "%d:%d-%d", &id, &first, &last)
			g := layout.Geometry{K: 1, M: 1}
			if seg, ok := s.state.View().Segment(id); ok {
				g = seg.Geometry
			}
			seal := Seal{Segment: id, First: first, Last: last, Shards: make([]ShardSeal, g.Shards())}
			if first > 0 {
				seal.Count = uint32(last-first) + 1
				for i := range seal.Shards {
					seal.Shards[i] = ShardSeal{Count: seal.Count, Length: layout.ShardOffset(seal.Count) * layout.BlockSize, Digest: [16]byte{byte(last)}}
				}
			}
			out = append(out, seal)
		}
	}
	return out
}

func (s *script) command() Command {
	session, epoch := layout.SessionID(s.num("session")), layout.Epoch(s.num("epoch"))
	switch s.d.Cmd {
	case "form":
		return FormCell{Cell: layout.CellID(s.num("cell"))}
	case "register":
		return s.register()
	case "update-device":
		return UpdateDevices{Devices: []DeviceUpdate{{Device: layout.DeviceID(s.num("device")), Total: s.num("total"), Used: s.num("used"), State: DeviceState(s.num("state"))}}}
	case "server-state":
		return SetServerState{Server: layout.ServerID(s.num("server")), Up: s.flag("up"), Registered: s.num("registered")}
	case "open-session":
		return OpenSession{ID: s.id(), Owner: s.text("owner"), Janitor: s.flag("janitor")}
	case "close-session":
		return CloseSession{Session: session}
	case "expire-session":
		return ExpireSession{Session: session}
	case "create":
		return CreateVolume{ID: s.id(), Name: s.text("name"), SizeBytes: s.num("size"), Geometry: s.geometry(), Class: layout.Class(s.num("class"))}
	case "resize":
		return ResizeVolume{ID: s.id(), Volume: s.ref(), SizeBytes: s.num("size"), Shrink: s.flag("shrink"), Session: session, Epoch: epoch}
	case "remove":
		return RemoveVolume{ID: s.id(), Volume: s.ref(), Now: s.flag("now")}
	case "undelete":
		return UndeleteVolume{ID: s.id(), Volume: s.ref()}
	case "purge":
		return PurgeVolume{Volume: s.volume()}
	case "acquire":
		return AcquireLease{ID: s.id(), Session: session, Volume: s.ref(), Force: s.flag("force")}
	case "release":
		return ReleaseLease{Session: session, Volume: s.volume(), Epoch: epoch, LastSeq: layout.Seq(s.num("last")), Abandon: s.flag("abandon")}
	case "allocate":
		return s.allocate()
	case "open-segments":
		return OpenSegments{Segments: s.segments("segments")}
	case "drop-segments":
		return DropSegments{Segments: s.segments("segments")}
	case "seal":
		return SealSegments{Volume: s.volume(), Epoch: epoch, Seals: s.seals("seals")}
	case "close-epoch":
		return CloseEpoch{Volume: s.volume(), Epoch: epoch, Cut: layout.Seq(s.num("cut")), Seals: s.seals("seals"), Undecided: s.text("undecided")}
	case "root":
		return RecordRoot{Volume: s.volume(), Epoch: epoch, MapLists: s.seals("lists"), Retired: s.segments("retired"), RetiredMap: s.segments("retired-map"),
			Flat: s.flag("flat"), Root: Root{Number: layout.RootNumber(s.num("number")), Covers: layout.Seq(s.num("covers")), Page: []byte("page")}}
	case "finalized":
		return MarkFinalized{Segments: s.segments("segments")}
	case "replace":
		return ReplaceShard{Segment: layout.SegmentID(s.num("segment")), Shard: layout.ShardIndex(s.num("shard")), Generation: layout.Generation(s.num("generation")), Device: layout.DeviceID(s.num("device"))}
	case "lost", "sound":
		list := []ShardAt{{Segment: layout.SegmentID(s.num("segment")), Shard: layout.ShardIndex(s.num("shard")), Generation: layout.Generation(s.num("generation"))}}
		if s.d.Cmd == "lost" {
			return MarkLost{Shards: list}
		}
		return MarkSound{Shards: list}
	case "change-devices":
		c := ChangeDevices{Change: DeviceChange(s.num("change")), Registered: s.num("registered")}
		for _, n := range s.nums("devices") {
			c.Devices = append(c.Devices, layout.DeviceID(n))
		}
		return c
	case "remove-server":
		return RemoveServer{Server: layout.ServerID(s.num("server"))}
	case "set-class", "add-class", "remove-class", "reserve", "renew", "end-reservation":
		return s.qosCommand()
	case "deleted":
		return MarkDeleted{Segments: s.segments("segments")}
	}
	return s.frozen()
}

// frozen reads the commands about snapshots, branches and the rebalance.
func (s *script) frozen() Command {
	session, epoch := layout.SessionID(s.num("session")), layout.Epoch(s.num("epoch"))
	switch s.d.Cmd {
	case "snapshot", "tag":
		item := SnapshotItem{Volume: s.ref(), Name: s.text("name"), Epoch: epoch, Seq: layout.Seq(s.num("seq"))}
		c := CreateSnapshots{ID: s.id(), Items: []SnapshotItem{item}, Tag: s.d.Cmd == "tag"}
		if also := s.text("also"); also != "" {
			c.Items = append(c.Items, SnapshotItem{Volume: VolumeRef{Name: also}, Name: s.text("name")})
		}
		return c
	case "remove-snapshot":
		return RemoveSnapshot{ID: s.id(), Volume: s.ref(), Name: s.text("name")}
	case "clone":
		return CloneVolume{ID: s.id(), Volume: s.ref(), Snapshot: s.text("name"), Name: s.text("to")}
	case "rollback":
		return RollbackVolume{ID: s.id(), Volume: s.ref(), Snapshot: s.text("name")}
	case "pin":
		return PinSnapshot{Session: session, Volume: s.ref(), Name: s.text("name")}
	case "unpin":
		return UnpinSnapshot{Session: session, Snapshot: layout.SnapshotID(s.num("snapshot"))}
	case "hold":
		return HoldTag{Volume: s.ref(), Name: s.text("name"), By: s.text("by"), Release: s.flag("release")}
	case "ready":
		return MarkTagReady{Snapshot: layout.SnapshotID(s.num("snapshot")), Digest: slices.Repeat([]byte{byte(s.num("digest"))}, DigestBytes), Blocks: 1}
	case "rebalance":
		return Rebalance{On: s.flag("on"), Began: s.num("began"), Why: s.text("why")}
	case "free":
		return FreeSegments{Volume: s.volume()}
	}
	s.t.Fatalf("%s: unknown command %q", s.d.Pos, s.d.Cmd)
	return nil
}

func (s *script) register() Command {
	n := byte(s.num("server"))
	inc := layout.Incarnation(max(1, s.num("incarnation")))
	host := s.num("host")
	if host == 0 {
		host = uint64(n)
	}
	c := RegisterServer{Cell: layout.CellID(s.num("cell")), UUID: layout.UUID{n}, DataAddress: fmt.Sprintf("10.0.0.%d:7410", host), ControlAddress: fmt.Sprintf("10.0.0.%d:7411", host)}
	for i := range max(1, s.num("devices")) {
		c.Devices = append(c.Devices, DeviceReport{UUID: layout.UUID{n, byte(i + 1)}, Total: 1 << 30, Incarnation: inc})
	}
	return c
}

// qosCommand gives commands of classes and reservations; figures may be negative.
func (s *script) qosCommand() Command {
	figure := func(key string) int64 {
		n, err := strconv.ParseInt(s.text(key), 10, 64)
		if err != nil && s.flag(key) {
			s.t.Fatalf("%s: %s: %v", s.d.Pos, key, err)
		}
		return n
	}
	switch s.d.Cmd {
	case "remove-class":
		return RemoveClass{ID: s.id(), Name: s.text("name")}
	case "reserve":
		return Reserve{ID: s.id(), CapacityBytes: figure("capacity"), CapacityOps: figure("capacity-ops"), Joint: !s.flag("apart"),
			Reservation: Reservation{Job: s.text("job"), Class: layout.Class(s.num("class")), Bytes: figure("bytes"), Ops: figure("ops"), TTLNs: figure("ttl"), Tenant: s.text("tenant")}}
	case "renew":
		return RenewReservation{ID: s.id(), Job: s.text("job"), TTLNs: figure("ttl")}
	case "end-reservation":
		return EndReservation{Job: s.text("job"), Renewed: s.num("renewed")}
	}
	c := SetClass{ID: s.id(), Add: s.d.Cmd == "add-class", Seen: s.num("seen"), CapacityBytes: figure("capacity"), CapacityOps: figure("capacity-ops"), Class: ClassRecord{Name: s.text("name"), Number: layout.Class(s.num("number")),
		Weight: figure("weight"), ReservedOps: figure("reserve-ops"), LimitBytes: figure("limit"), ReservedBytes: figure("reserve"), TargetNs: figure("target"), SLONs: figure("slo")}}
	return c
}

func (s *script) allocate() Command {
	c := AllocateSegments{ID: s.id(), Session: layout.SessionID(s.num("session")), Volume: s.volume(), Epoch: layout.Epoch(s.num("epoch")), Map: s.flag("map"), Count: uint32(max(1, s.num("count")))}
	for range c.Count {
		p := PlacedSegment{Geometry: s.geometry(), ShardLength: 4 << 20}
		for _, d := range s.nums("devices") {
			p.Devices = append(p.Devices, layout.DeviceID(d))
		}
		c.Placed = append(c.Placed, p)
	}
	return c
}

func (s *script) query() (out string, ok bool) {
	v := s.state.View()
	var b strings.Builder
	switch s.d.Cmd {
	case "show-volume":
		vol, found := v.Volume(s.volume())
		if !found {
			return "gone", true
		}
		fmt.Fprintf(&b, "%s size=%d %v epoch=%d holder=%d closed=%v last=%d root=%d covers=%d cuts=%v segments=%d unsealed=%d stored=%d reserved=%d\n",
			vol.path(), vol.SizeBytes, vol.Geometry, vol.Epoch, vol.Holder, vol.Closed, vol.LastSeq, vol.Root.Number, vol.Root.Covers, vol.Cuts, vol.Segments, vol.Unsealed, vol.StoredBytes, vol.ReservedBytes)
		page, _ := v.SegmentsOfVolume(vol.ID, 0, 0)
		for _, seg := range page {
			fmt.Fprintf(&b, "  segment %d epoch=%d map=%v %v seq %d-%d retired=%d on %v\n", seg.ID, seg.Epoch, seg.Map, seg.State, seg.Seal.First, seg.Seal.Last, seg.Retired, seg.Placements)
		}
	case "snapshots":
		v.t.frozen.Scan(func(_ layout.SnapshotID, f *Frozen) bool {
			fmt.Fprintf(&b, "%d %s of volume %d, %v, seq %d of epoch %d, root %d, cuts %v, segments %d to %d, removed=%v holds=%v ready=%v\n",
				f.ID, f.Name, f.Volume, f.Kind, f.Seq, f.Epoch, f.Root.Number, f.Cuts, f.First, f.Last, f.Removed, f.Holds, f.Digest != nil)
			return true
		})
	case "deletable":
		page, _ := v.Deletable(0, 0)
		for _, seg := range page {
			fmt.Fprintf(&b, "segment %d\n", seg.ID)
		}
	case "open-snapshot":
		f, err := v.t.resolveFrozen("open", s.ref(), s.text("name"))
		if err != nil {
			return err.Error(), true
		}
		b.WriteString(describeOpen(v.t.openFrozen(f)))
	case "open":
		o, err := v.Open(s.ref())
		if err != nil {
			return err.Error(), true
		}
		b.WriteString(describeOpen(&o))
	case "health":
		down := s.num("down")
		fmt.Fprintf(&b, "%+v\n%+v\n", v.Counts(), v.Health(func(id layout.ServerID) bool { return uint64(id) != down }))
	case "list":
		page, more := v.Volumes(s.text("tenant"), s.text("after"), int(s.num("most")))
		for _, vol := range page {
			fmt.Fprintf(&b, "%d %s\n", vol.ID, vol.path())
		}
		fmt.Fprintf(&b, "more=%v\n", more)
	case "classes":
		for _, c := range v.Classes() {
			fmt.Fprintf(&b, "%d %s weight=%d reserve=%d limit=%d target=%v slo=%v changed=%d\n", c.Number, c.Name, c.Weight, c.ReservedBytes, c.LimitBytes,
				time.Duration(c.TargetNs), time.Duration(c.SLONs), c.Changed)
		}
	case "reservations":
		for _, r := range v.Reservations() {
			fmt.Fprintf(&b, "%d %s class=%d bytes=%d ops=%d ttl=%v renewed=%d\n", r.ID, r.Job, r.Class, r.Bytes, r.Ops, time.Duration(r.TTLNs), r.Renewed)
		}
		fmt.Fprintf(&b, "together %+v\n", v.Reserved())
	default:
		return "", false
	}
	return b.String(), true
}

func describe(r Result) string {
	if r.Err != nil {
		out := fmt.Sprintf("%s: %v\n", errs.KindOf(r.Err), r.Err)
		if hint := errs.HintOf(r.Err); hint != "" {
			out += "  hint: " + hint + "\n"
		}
		return out
	}
	var b strings.Builder
	if b.WriteString("ok"); r.Repeat {
		b.WriteString(", a repeat")
	}
	if r.Epoch != 0 {
		fmt.Fprintf(&b, ", epoch %d", r.Epoch)
	}
	if len(r.Segments) > 0 {
		fmt.Fprintf(&b, ", segments %v", r.Segments)
	}
	b.WriteString("\n")
	for _, e := range r.Events {
		fmt.Fprintf(&b, "  %s%+v\n", strings.TrimPrefix(fmt.Sprintf("%T", e), "state."), e)
	}
	if r.Open != nil {
		b.WriteString(describeOpen(r.Open))
	}
	return b.String()
}

func describeOpen(o *OpenVolume) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  clean=%v last-seq=%d root=%d cuts=%v\n", o.Clean, o.LastSeq, o.Volume.Root.Number, o.Cuts)
	for _, s := range o.Segments {
		fmt.Fprintf(&b, "    segment %d of epoch %d, %v\n", s.ID, s.Epoch, s.State)
	}
	for _, a := range o.Ancestors {
		fmt.Fprintf(&b, "    of volume %d up to seq %d\n", a.Volume, a.Limit)
		for _, s := range a.Segments {
			fmt.Fprintf(&b, "      segment %d of epoch %d, %v\n", s.ID, s.Epoch, s.State)
		}
	}
	return b.String()
}
