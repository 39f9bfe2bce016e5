package state

import (
	"slices"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// restoreIDs and restoreEpochs are left out after a backup was restored: more
	// than any cell hands out between two backups.
	restoreIDs    = 1 << 40
	restoreEpochs = 1 << 32
)

func (c RestoreCell) check() error { return nil }

// apply ends everything that was under way when the backup was made, and leaves out
// the ids and epochs that may have been used since.
func (c RestoreCell) apply(t *tables, r *Result) error {
	if t.cell.ID == 0 {
		return errs.New(errs.InvalidArgument, "restore the cell", "the backup is of a cell that had not formed")
	}
	if len(t.cell.Restored) == maxRestored {
		return errs.New(errs.TooLarge, "restore the cell", "it was restored %d times", maxRestored)
	}
	for _, id := range sessionIDs(t) {
		if err := t.endSession(id, true, r); err != nil {
			return err
		}
	}
	gap := Gap{After: t.last.Segment}
	t.last.Server += restoreIDs
	t.last.Device += restoreIDs
	t.last.Session += restoreIDs
	t.last.Volume += restoreIDs
	t.last.Segment += restoreIDs
	t.last.Snapshot += restoreIDs
	gap.Last = t.last.Segment
	t.cell.Restored = append(slices.Clone(t.cell.Restored), gap)
	t.cell.Members = nil
	t.volumes.Copy().Scan(func(_ layout.VolumeID, v *Volume) bool {
		if v.Epoch > 0 && !v.Purged {
			t.skipEpochs(v.ID, r)
		}
		return true
	})
	r.Cell = t.cell.ID
	r.emit(CellRestored{Gap: gap})
	return nil
}

// skipEpochs begins a later epoch that nobody writes, as taking the lease would.
func (t *tables) skipEpochs(id layout.VolumeID, r *Result) {
	v := t.volume(id)
	v.Epoch += restoreEpochs
	v.Closed = t.endUnsealed(v, r, false) == 0
	if v.Closed {
		v.Undecided = ""
		v.addCut(Cut{Before: v.Epoch, Seq: t.vouched(v)})
	}
	t.putVolume(v)
}

func sessionIDs(t *tables) (ids []layout.SessionID) {
	t.sessions.Scan(func(id layout.SessionID, _ *Session) bool { ids = append(ids, id); return true })
	return ids
}

func (c RecordMember) check() error {
	if c.Member.Address == "" || len(c.Member.Address) > MaxText {
		return errs.New(errs.InvalidArgument, "record a metadata server", "an address of %d bytes", len(c.Member.Address))
	}
	return nil
}

// apply keeps the list in the order of addresses. An earlier life of the same
// directory is refused: it is an old copy.
func (c RecordMember) apply(t *tables, r *Result) error {
	known := t.cell.Member(c.Member.Address)
	if known == c.Member || known == (Member{}) && c.Member.Life == 0 {
		r.Repeat = true
		return nil
	}
	if known.Directory == c.Member.Directory && c.Member.Life != 0 && c.Member.Life < known.Life {
		return errs.New(errs.Conflict, "record a metadata server", "%s was opened %d times already, this is the %dth", known.Address, known.Life, c.Member.Life)
	}
	list := slices.DeleteFunc(slices.Clone(t.cell.Members), func(m Member) bool { return m.Address == c.Member.Address })
	if c.Member.Life != 0 {
		if len(list) == maxMembers {
			return errs.New(errs.TooLarge, "record a metadata server", "%d are on record", maxMembers)
		}
		list = append(list, c.Member)
		slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Address, b.Address) })
	}
	t.cell.Members = list
	return nil
}
