package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// TestScripts runs the scripts in testdata, whose output explains the store.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		sc := &script{t: t, mem: newMem(), units: map[layout.SegmentID][]Append{}}
		formatted(t, sc.mem)
		datadriven.RunTest(t, path, sc.run)
		if sc.s != nil {
			ok(t, sc.s.Close())
		}
	})
}

type script struct {
	t     *testing.T
	mem   *vfs.Mem
	s     *Store
	units map[layout.SegmentID][]Append
}

type scriptArgs struct {
	shard, seq, at, unit, epoch, last, incarnation, keep int
	durable                                              bool
}

func (sc *script) run(t *testing.T, d *datadriven.TestData) string {
	a := scriptArgs{shard: 1, epoch: 5, unit: 4096, last: 1 << 30}
	for name, p := range map[string]*int{"shard": &a.shard, "seq": &a.seq, "at": &a.at, "unit": &a.unit, "epoch": &a.epoch,
		"last": &a.last, "incarnation": &a.incarnation, "keep": &a.keep} {
		d.MaybeScanArgs(t, name, p)
	}
	a.durable = d.HasArg("durable")
	commands := map[string]func(scriptArgs) string{
		"open": sc.open, "close": sc.close, "crash": sc.crash, "create": sc.create, "append": sc.append, "sync": sc.sync,
		"fence": sc.fence, "finalize": sc.finalize, "delete": sc.delete, "list": sc.list, "stat": sc.stat, "read": sc.read,
		"check-recovery": sc.checkRecovery, "rot": sc.rot,
	}
	command := commands[d.Cmd]
	if command == nil {
		t.Fatalf("no command %q", d.Cmd)
	}
	if sc.s == nil {
		return command(a)
	}
	before := sc.s.Counters().Fsyncs
	out := command(a)
	if sc.s != nil && (d.Cmd == "sync" || d.Cmd == "append" || d.Cmd == "fence" || d.Cmd == "create") {
		out += fmt.Sprintf(" (%d fsyncs)", sc.s.Counters().Fsyncs-before)
	}
	return out
}

func answer(err error, format string, args ...any) string {
	if err != nil {
		return fmt.Sprintf("%v: %v", errs.KindOf(err), err)
	}
	return fmt.Sprintf(format, args...)
}

func (sc *script) open(scriptArgs) string {
	s, err := Open(sc.mem, format.Superblock{}, testOptions)
	if err != nil {
		return answer(err, "")
	}
	sc.s = s
	return fmt.Sprintf("incarnation %d", s.Incarnation())
}

func (sc *script) close(scriptArgs) string {
	err := sc.s.Close()
	sc.s = nil
	return answer(err, "closed")
}

// crash cuts the power and loses what was not synced.
func (sc *script) crash(a scriptArgs) string {
	sc.mem = sc.mem.Crash(nil, a.keep)
	_ = sc.s.Close() // its disk is gone; this ends its goroutine
	sc.s = nil
	return fmt.Sprintf("the power was cut, %d %% of what was not synced survives", a.keep)
}

func (sc *script) ref(a scriptArgs) frame.ShardRef { return testRef(segment(a.shard)) }

func (sc *script) create(a scriptArgs) string {
	return answer(sc.s.Create(testSpec(segment(a.shard))), "created")
}

func (sc *script) append(a scriptArgs) string {
	u := unitOf(segment(a.shard), layout.Epoch(a.epoch), layout.Seq(a.seq), layout.ShardOffset(a.at), uint32(a.unit))
	u.Durable = a.durable
	err := sc.s.Append(u)
	if list := sc.units[segment(a.shard)]; err == nil && !slices.ContainsFunc(list, func(b Append) bool { return bytes.Equal(b.Header, u.Header) }) {
		sc.units[segment(a.shard)] = append(sc.units[segment(a.shard)], u)
	}
	return answer(err, "appended")
}

func (sc *script) sync(a scriptArgs) string {
	inc := sc.s.Incarnation()
	if a.incarnation != 0 {
		inc = layout.Incarnation(a.incarnation)
	}
	return answer(sc.s.Sync(layout.Epoch(a.epoch), inc, []frame.ShardRef{sc.ref(a)}), "durable")
}

func (sc *script) fence(a scriptArgs) string {
	list, err := sc.s.Fence(sc.ref(a), layout.Epoch(a.epoch))
	var b strings.Builder
	for _, f := range list {
		if f.Err == nil {
			fmt.Fprintf(&b, "seq %d: have it\n", f.Seq)
		} else {
			fmt.Fprintf(&b, "seq %d: cannot tell: %v\n", f.Seq, f.Err)
		}
	}
	return answer(err, "%sfenced, %d stripes", b.String(), len(list))
}

// finalize seals the shard at all that was appended up to last.
func (sc *script) finalize(a scriptArgs) string {
	var seal stripe.ShardSeal
	for _, u := range sc.units[segment(a.shard)] {
		if h, _, _ := stripe.Decode(u.Header); int(h.Seq) <= a.last {
			seal.Add(h)
		}
	}
	return answer(sc.s.Finalize(sc.ref(a), layout.Seq(a.last), seal), "finalized at %d stripes", seal.Count)
}

func (sc *script) delete(a scriptArgs) string { return answer(sc.s.Delete(sc.ref(a)), "deleted") }

func (sc *script) list(a scriptArgs) string {
	headers, count, next, err := sc.s.List(sc.ref(a), layout.Seq(a.seq), 1<<20)
	var b strings.Builder
	for range count {
		h, n, _ := stripe.Decode(headers)
		headers = headers[n:]
		fmt.Fprintf(&b, "seq %d at %d, unit %d\n", h.Seq, h.Offset, h.Shape.Unit)
	}
	return answer(err, "%snext %d", b.String(), next)
}

func (sc *script) stat(a scriptArgs) string {
	st, err := sc.s.Stat(sc.ref(a))
	return answer(err, "%v, fence %d, length %d, stored %d in %d stripes", st.State, st.Fence, st.Length, st.Stored, st.Stripes)
}

func (sc *script) read(a scriptArgs) string {
	ranges := []frame.ReadRange{{Offset: layout.ShardOffset(a.at), Length: uint32(a.unit)}}
	b := make([]byte, a.unit)
	_, err := sc.s.Read(sc.ref(a), ranges, b)
	if err != nil {
		return answer(err, "")
	}
	crcs, err := sc.s.CRCs(sc.ref(a), ranges, nil)
	fits := 0
	for i, c := range crcs {
		block := b[i*layout.BlockSize : (i+1)*layout.BlockSize]
		if c == crcOf(block) || c == 0 && string(block) == string(make([]byte, layout.BlockSize)) {
			fits++
		}
	}
	return answer(err, "%d of %d blocks fit their checksums, the first is %08x", fits, len(crcs), crcs[0])
}

func (sc *script) checkRecovery(a scriptArgs) string {
	return answer(sc.s.CheckRecovery(sc.ref(a), layout.Epoch(a.epoch)), "recovery may read")
}

// rot flips a bit of the shard's data file.
func (sc *script) rot(a scriptArgs) string {
	return answer(sc.mem.FlipBit(fileName{sc.ref(a).ShardKey, 1}.path(), int64(a.at), 3), "a bit flipped at %d", a.at)
}
