package reconcile

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"strake/internal/layout"
	"strake/meta/state"
)

// TestScripts runs the golden scripts. `at` moves the clock; `plan` shows the
// tasks; `do` carries out the tasks that were handed out, `fail` fails them.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var w *world
		var tasks []Task
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			num := func(i int) uint64 {
				n, err := strconv.ParseUint(d.CmdArgs[i].Key, 10, 64)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return n
			}
			switch d.Cmd {
			case "cell":
				limits := DefaultLimits()
				limits.PurgeAfter = time.Minute
				w = newWorld(t, limits, int(num(0)))
			case "volume":
				id := w.create(d.CmdArgs[0].Key)
				w.tags(id, d.CmdArgs[1:])
				return fmt.Sprintf("volume %d\n", id)
			case "allocate":
				return fmt.Sprintf("segment %d\n", w.allocate(layout.VolumeID(num(0)), layout.DeviceID(num(1)), layout.DeviceID(num(2))))
			case "open":
				w.must(state.OpenSegments{Segments: []layout.SegmentID{layout.SegmentID(num(0))}})
			case "seal":
				s, _ := w.state.View().Segment(layout.SegmentID(num(0)))
				w.must(state.SealSegments{Volume: s.Volume, Epoch: s.Epoch, Seals: []state.Seal{w.sealed(s.ID, uint32(num(1)))}})
			case "lost":
				s, _ := w.state.View().Segment(layout.SegmentID(num(0)))
				w.must(state.MarkLost{Shards: []state.ShardAt{{Segment: s.ID, Shard: layout.ShardIndex(num(1)), Generation: s.Placements[num(1)].Generation}}})
			case "drain":
				w.must(state.ChangeDevices{Devices: []layout.DeviceID{layout.DeviceID(num(0))}, Change: state.DrainDevice})
			case "progress":
				met, running := w.planner.Progress()
				return fmt.Sprintf("%+v, %d running\n", met, running)
			case "remove":
				w.must(state.RemoveVolume{ID: w.next(), Volume: state.VolumeRef{ID: layout.VolumeID(num(0))}})
			case "register":
				w.must(state.RegisterServer{UUID: layout.UUID{byte(num(0))}, Devices: []state.DeviceReport{{UUID: layout.UUID{1, byte(num(0))}, Total: 1 << 40, Incarnation: 2}}})
			case "at":
				w.now, _ = time.ParseDuration(d.CmdArgs[0].Key)
			case "hear":
				for i := range d.CmdArgs {
					w.planner.Heard(layout.ServerID(num(i)), w.now)
				}
			case "pass": // time, hearing servers each second
				until, _ := time.ParseDuration(d.CmdArgs[0].Key)
				more, text := w.pass(until, len(d.CmdArgs)-1, func(i int) layout.ServerID { return layout.ServerID(num(i + 1)) })
				tasks = append(tasks, more...)
				return text
			case "keep":
				w.planner.Kept(w.session, w.now)
			case "plan":
				more := w.planner.Plan(w.state.View(), w.now)
				tasks = append(tasks, more...)
				return show(more)
			case "do", "fail":
				w.finish(tasks, d.Cmd == "do")
				tasks = nil
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			return ""
		})
	})
}

// finish carries tasks out, or fails them.
func (w *world) finish(tasks []Task, ok bool) {
	for _, task := range tasks {
		if ok {
			w.do(task)
		}
		w.planner.Done(task, ok, w.now)
	}
}

// tags makes tags of a volume that the world's session writes.
func (w *world) tags(id layout.VolumeID, names []datadriven.CmdArg) {
	v, _ := w.state.View().Volume(id)
	for _, name := range names {
		item := state.SnapshotItem{Volume: state.VolumeRef{ID: id}, Name: name.Key, Epoch: v.Epoch, Seq: v.LastSeq}
		w.must(state.CreateSnapshots{ID: w.next(), Tag: true, Items: []state.SnapshotItem{item}})
	}
}

func show(tasks []Task) string {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%s%+v\n", strings.TrimPrefix(fmt.Sprintf("%T", t), "reconcile."), t)
	}
	if len(tasks) == 0 {
		return "nothing\n"
	}
	return b.String()
}

// pass lets time pass, hearing n servers each second.
func (w *world) pass(until time.Duration, n int, server func(i int) layout.ServerID) (tasks []Task, text string) {
	for ; w.now < until; w.now += time.Second {
		for i := range n {
			w.planner.Heard(server(i), w.now)
		}
		w.planner.Kept(w.session, w.now)
		for _, t := range w.planner.Plan(w.state.View(), w.now) {
			tasks = append(tasks, t)
			text += fmt.Sprintf("%v %s", w.now, show([]Task{t}))
		}
	}
	return tasks, text
}
