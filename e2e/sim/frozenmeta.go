package sim

import (
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// The leader's part of snapshots and branches, with the metadata server's steps.

const (
	barrierLimit = 5 * time.Second
	barrierAgain = 500 * time.Millisecond
)

// barrier is a question to a volume's writer that is under way: up to which seq is
// all flushed?
type barrier struct {
	volume   layout.VolumeID
	answered func(*simclient.AnswerBarrier)
}

func named(name string) state.VolumeRef { return state.VolumeRef{Name: name} }

// frozenCall does one call about snapshots or branches.
func (m *metaService) frozenCall(f *simclient.Fiber, request any) (any, error) {
	var cmd state.Command
	switch q := request.(type) {
	case *simclient.CreateSnapshot:
		return &simclient.Kept{}, m.createSnapshot(f, q)
	case *simclient.AnswerBarrier:
		return m.answerBarrier(q)
	case *simclient.OpenSnapshot:
		return m.openSnapshot(f, q)
	case *simclient.GetVolume:
		v, err := m.view().Resolve(state.VolumeRef{ID: q.Volume})
		info := m.volumeInfo(&v)
		return &info, errs.Wrap(err, "look the volume up")
	case *simclient.RemoveSnapshot:
		was, unknown := m.view().FindSnapshot(named(q.Volume), q.Name)
		_, err := m.propose(f, state.RemoveSnapshot{ID: state.CommandID(q.Command), Volume: named(q.Volume), Name: q.Name})
		if err == nil && unknown == nil && m.planner != nil {
			m.planner.SnapshotRemoved(m.view(), &was)
		}
		return &simclient.Kept{}, err
	case *simclient.CloseSnapshot:
		cmd = state.UnpinSnapshot{Session: q.Session, Snapshot: q.Snapshot}
	case *simclient.CloneVolume:
		cmd = state.CloneVolume{ID: state.CommandID(q.Command), Volume: named(q.Volume), Snapshot: q.Snapshot, Name: q.To}
	case *simclient.RollbackVolume:
		cmd = state.RollbackVolume{ID: state.CommandID(q.Command), Volume: named(q.Volume), Snapshot: q.Snapshot}
	case *simclient.FlattenVolume:
		cmd = state.FlattenVolume{Volume: named(q.Volume)}
	case *simclient.RemoveVolume:
		cmd = state.RemoveVolume{ID: state.CommandID(q.Command), Volume: named(q.Volume), Now: true}
	default:
		return nil, errs.New(errs.Internal, "", "request %T", request)
	}
	_, err := m.propose(f, cmd)
	return &simclient.Kept{}, err
}

// createSnapshot freezes a volume. When a map root is recorded or the writer changes
// between a barrier and the command, it is asked again.
func (m *metaService) createSnapshot(f *simclient.Fiber, q *simclient.CreateSnapshot) error {
	until := m.s.now + barrierLimit
	for {
		item := state.SnapshotItem{Volume: named(q.Volume), Name: q.Name}
		if err := m.askWriter(f, until, &item); err != nil {
			return err
		}
		_, err := m.propose(f, state.CreateSnapshots{ID: state.CommandID(q.Command), Items: []state.SnapshotItem{item}})
		if errs.KindOf(err) != errs.StaleEpoch || m.s.now >= until {
			return err
		}
		m.s.rare("a snapshot asked for again")
	}
}

// askWriter fills in what the volume's writer answers, where there is one.
func (m *metaService) askWriter(f *simclient.Fiber, until time.Duration, item *state.SnapshotItem) error {
	v, err := m.view().Resolve(item.Volume)
	if err != nil || v.Holder == 0 {
		return err
	}
	m.nextID++
	id := m.nextID
	defer delete(m.barriers, id)
	over, got := false, (*simclient.AnswerBarrier)(nil)
	var ask func()
	ok := f.Wait(func(done func()) {
		m.barriers[id] = barrier{v.ID, func(a *simclient.AnswerBarrier) {
			if !over {
				over, got = true, a
				done()
			}
		}}
		term := m.term
		ask = func() {
			if over || m.term != term || m.leader < 0 {
				return
			}
			if m.s.now >= until {
				over = true
				done()
				return
			}
			m.tell(v.Holder, simclient.Event{Volume: v.ID, Barrier: id})
			m.s.after(min(barrierAgain, until-m.s.now), ask)
		}
		ask()
	})
	switch {
	case !ok:
		return errs.New(errs.Unavailable, "", "the term ended")
	case got == nil:
		m.s.rare("a snapshot barrier refused")
		return errs.New(errs.LeaseHeld, "create snapshot", "session %d writes volume %d and did not flush within %v", v.Holder, v.ID, barrierLimit)
	}
	m.s.rare("a snapshot barrier answered")
	item.Epoch, item.Seq = got.Epoch, got.Seq
	return nil
}

func (m *metaService) answerBarrier(q *simclient.AnswerBarrier) (any, error) {
	if err := m.writes(q.Volume, q.Epoch, q.Session); err != nil {
		return nil, err
	}
	if b, ok := m.barriers[q.Barrier]; ok && b.volume == q.Volume {
		b.answered(q)
	}
	return &simclient.Kept{}, nil
}

func (m *metaService) openSnapshot(f *simclient.Fiber, q *simclient.OpenSnapshot) (any, error) {
	cmd := state.PinSnapshot{Session: q.Session, Snapshot: q.Snapshot, Name: q.Name}
	if q.Snapshot == 0 {
		cmd.Volume = named(q.Volume)
	}
	r, err := m.propose(f, cmd)
	if err != nil {
		return nil, err
	}
	fz, _ := m.view().SnapshotByID(r.Snapshot)
	open, err := m.view().OpenSnapshot(r.Snapshot)
	if err != nil {
		return nil, err
	}
	return &simclient.OpenedSnapshot{ID: fz.ID, Volume: fz.Volume, Seq: fz.Seq, Open: m.opened(&open)}, nil
}

func (m *metaService) volumeInfo(v *state.Volume) simclient.VolumeInfo {
	return simclient.VolumeInfo{ID: v.ID, Name: v.Name, Blocks: layout.Blocks(int64(v.SizeBytes)), Geometry: v.Geometry, Epoch: v.Epoch, Holder: v.Holder,
		Branch: v.Origin != 0, Flattening: v.Flattening, Held: m.planner.Held(m.view(), v.ID)}
}
