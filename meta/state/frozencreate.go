package state

import (
	"fmt"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
)

func (c CreateSnapshots) check() error {
	op := "create snapshots"
	if len(c.Items) == 0 || len(c.Items) > MaxGroup {
		return errs.New(errs.InvalidArgument, op, "%d volumes, 1 to %d are possible", len(c.Items), MaxGroup).WithHint("take them in groups")
	}
	for _, i := range c.Items {
		if err := i.Volume.check(op); err != nil {
			return err
		}
		if err := layout.CheckName("snapshot", i.Name); err != nil {
			return errs.As(err, errs.InvalidArgument, "%s", op)
		}
	}
	return nil
}

// apply freezes all of the volumes or none.
func (c CreateSnapshots) apply(t *tables, r *Result) error {
	seen := map[string]bool{}
	volumes := make([]*Volume, len(c.Items))
	for i, item := range c.Items {
		v, err := item.judge(t)
		if err != nil {
			return err
		}
		key := frozenKey(v.family(), item.Name)
		if seen[key] {
			return errs.New(errs.InvalidArgument, "create snapshots", "%s@%s stands twice", v.path(), item.Name).WithHint("name each snapshot once")
		}
		seen[key], volumes[i] = true, v
	}
	kind := PlainSnapshot
	if c.Tag {
		kind = TagSnapshot
	}
	for i, item := range c.Items {
		v := t.volume(volumes[i].ID) // two snapshots of one volume: the first changed it
		t.freeze(v, item.Name, kind, item.Seq, c.AtUnix, r)
	}
	r.Volume = volumes[0].ID
	return nil
}

// judge refuses an item that can't be frozen now. StaleEpoch and Conflict say
// that the writer must be asked again.
func (i SnapshotItem) judge(t *tables) (*Volume, error) {
	v, err := t.resolve("create snapshot", i.Volume)
	if err != nil {
		return nil, err
	}
	op := "create snapshot " + v.path() + "@" + i.Name
	switch {
	case v.Removed:
		return nil, errs.New(errs.NotFound, op, "the volume is removed").WithHint("bring it back with `strake volume undelete`")
	case v.Holder == 0 && v.Unsealed > 0:
		return nil, errs.New(errs.Busy, op, "its writer is gone and it is not recovered yet").WithHint("repeat in a while")
	case v.Holder != 0 && !v.Closed:
		return nil, errs.New(errs.Busy, op, "%s is recovering it", t.owner(v.Holder)).WithHint("repeat in a while")
	case v.Holder != 0 && i.Epoch != v.Epoch:
		return nil, errs.New(errs.StaleEpoch, op, "%s writes it under epoch %d, not %d", t.owner(v.Holder), v.Epoch, i.Epoch).WithHint("ask its writer for a barrier")
	case v.Holder != 0 && i.Seq < v.Root.Covers:
		return nil, errs.New(errs.StaleEpoch, op, "seq %d, but a newer map root covers seq %d", i.Seq, v.Root.Covers).WithHint("ask its writer for another barrier")
	}
	return v, t.nameFree(op, v, i.Name)
}

// nameFree refuses a snapshot's name that is taken, and one too many.
func (t *tables) nameFree(op string, v *Volume, name string) error {
	if id, taken := t.frozenNames.Get(frozenKey(v.family(), name)); taken {
		f, _ := t.frozen.Get(id)
		return errs.New(errs.AlreadyExists, op, "there is a %v of that name", f.Kind).WithHint("choose another name")
	}
	if n := t.countFrozen(v.family()); n >= MaxSnapshots {
		return errs.New(errs.TooLarge, op, "the volume has %d snapshots, at most %d are allowed", n, MaxSnapshots).WithHint("remove some: `strake snapshot rm`")
	}
	return nil
}

// countFrozen counts a family's snapshots that are not removed.
func (t *tables) countFrozen(family layout.VolumeID) int { return t.ofFamily.count(uint64(family)) }

// freeze makes a snapshot at seq, or at the newest snapshot's seq when that is
// higher: what was flushed later than asked for is in it then. Without a writer
// it is the end of the log.
func (t *tables) freeze(v *Volume, name string, kind SnapshotKind, seq layout.Seq, at uint64, r *Result) *Frozen {
	if v.Holder == 0 {
		seq = v.LastSeq
	}
	if last := t.newest(v.ID); last != nil {
		seq = max(seq, last.Seq)
	}
	t.last.Snapshot++
	f := &Frozen{ID: t.last.Snapshot, Volume: v.ID, Family: v.family(), Name: name, Kind: kind, Seq: seq, Epoch: v.Epoch,
		Root: v.Root, SizeBytes: v.SizeBytes, Last: t.last.Segment, AtUnix: at}
	for _, cut := range v.Cuts {
		if cut.Seq > v.Root.Covers && cut.Seq < seq {
			f.Cuts = append(f.Cuts, cut)
		}
	}
	f.First = layout.SegmentID(min(t.replayed.first(uint64(v.ID)), t.unsealed.first(uint64(v.ID)), uint64(f.Last)))
	t.putFrozen(f)
	t.putVolume(v)
	r.emit(SnapshotCreated{Snapshot: f.ID, Volume: v.ID, Seq: seq})
	return f
}

// vouched is how far a volume's log stands for sure: its snapshots were flushed, in
// segments that may not be sealed yet. Once people remove a snapshot it vouches for
// nothing any more, so that a loss that reaches below it can be accepted.
func (t *tables) vouched(v *Volume) layout.Seq {
	if f := t.newest(v.ID); f != nil {
		return max(v.LastSeq, f.Seq)
	}
	return v.LastSeq
}

// reach has snapshots that replay what a recovery may have copied look for it up to
// the newest segment: the copies of stripes that they hold lie in one that is younger
// than they are.
func (t *tables) reach(v *Volume) {
	var ids []layout.SnapshotID
	t.shelf.bySeq.Ascend(spot{volume: v.ID, at: uint64(v.Root.Covers) + 1}, func(s spot) bool {
		if s.volume != v.ID {
			return false
		}
		ids = append(ids, s.id)
		return true
	})
	for _, id := range ids {
		f := t.snapshotOf(id)
		f.Last = t.last.Segment
		t.putFrozen(f)
	}
}

func (c RemoveSnapshot) check() error { return checkFrozenRef("remove snapshot", c.Volume, c.Name) }

func checkFrozenRef(op string, v VolumeRef, name string) error {
	if err := v.check(op); err != nil {
		return err
	}
	return errs.As(layout.CheckName("snapshot", name), errs.InvalidArgument, "%s", op)
}

func (c RemoveSnapshot) apply(t *tables, r *Result) error {
	f, err := t.resolveFrozen("remove snapshot", c.Volume, c.Name)
	if err != nil {
		return err
	}
	r.Volume = f.Volume
	if len(f.Holds) > 0 {
		return errs.New(errs.Busy, "remove tag "+c.Name, "it is held by %s", f.Holds[0]).WithHint("`strake tag release` gives it up")
	}
	t.removeFrozen(f, r)
	return nil
}

// resolveFrozen finds a snapshot by its volume's reference and its own name, and
// gives a copy.
func (t *tables) resolveFrozen(op string, ref VolumeRef, name string) (*Frozen, error) {
	v, err := t.resolve(op, ref)
	if err != nil {
		return nil, err
	}
	id, ok := t.frozenNames.Get(frozenKey(v.family(), name))
	if !ok {
		return nil, errs.New(errs.NotFound, op, "there is no snapshot %s@%s", v.path(), name).WithHint("`strake snapshot ls %s` lists them", v.path())
	}
	return t.snapshotOf(id), nil
}

// removeFrozen takes a snapshot away, or hides it while something stands on it.
// The space comes back with FreeSegments.
func (t *tables) removeFrozen(f *Frozen, r *Result) {
	if !f.Removed {
		r.emit(SnapshotRemoved{Snapshot: f.ID, Volume: f.Volume})
	}
	f.Removed, f.Holds = true, nil
	t.putFrozen(f)
	t.dropUnused(f, r)
}

// dropUnused ends a removed snapshot that nothing stands on.
func (t *tables) dropUnused(f *Frozen, r *Result) {
	if !f.Removed || t.branches.owns(uint64(f.ID)) || t.pinned.owns(uint64(f.ID)) && !planted.Is(planted.PinForgotten) {
		return
	}
	t.frozen.Delete(f.ID)
	t.unfileFrozen(f)
	r.emit(SnapshotGone{Snapshot: f.ID, Volume: f.Volume})
	v := t.volume(f.Volume)
	t.looseEnds(v)
	t.putVolume(v)
	t.settle(v, r)
}

// looseEnds has the volume's retired segments looked at again: some may not be
// needed any more. A purged volume's are looked at all the time.
func (t *tables) looseEnds(v *Volume) {
	switch {
	case v.Purged || !t.retired.owns(uint64(v.ID)):
	case v.Freeing:
		v.FreeAgain = true
	default:
		v.Freeing, v.FreeAfter = true, 0
	}
}

// settle lets go of what a volume no longer stands on, and forgets a purged one
// that has nothing left. v is a copy of its record as it is.
func (t *tables) settle(v *Volume, r *Result) {
	has := from(t.shelf.bySeq, v.ID, 0, 0) != 0
	if v.Origin != 0 && t.detached(v, has) {
		origin := t.snapshotOf(v.Origin)
		v.Origin = 0
		t.putVolume(v)
		t.dropUnused(origin, r)
	}
	if v.Purged && !has && !t.byVolume.owns(uint64(v.ID)) {
		t.dropVolume(v.ID)
		r.emit(VolumeGone{Volume: v.ID})
	}
}

// detached tells whether neither the head nor a snapshot of a branch names
// anything of the branch's origin.
func (t *tables) detached(v *Volume, has bool) bool {
	switch {
	case v.Purged && !has:
		return true
	case v.Flat == 0:
		return false
	case !has:
		return true
	}
	oldest, _ := t.frozen.Get(from(t.shelf.byRoot, v.ID, 0, 0))
	return oldest.Root.Number >= v.Flat
}

func (c FreeSegments) check() error { return nil }

// apply looks at the next retired segments of a volume whose snapshots became
// fewer, and files those that are needed no more with the deletable ones. What
// it changes is derived: who restores the state from its records has them there
// already.
func (c FreeSegments) apply(t *tables, r *Result) error {
	v := t.volume(c.Volume)
	if v == nil || !v.Freeing {
		r.Repeat = true
		return nil
	}
	r.Volume = v.ID
	seen := 0
	t.retired.ascend(uint64(v.ID), uint64(v.FreeAfter), func(id uint64) bool {
		v.FreeAfter = layout.SegmentID(id)
		if s := t.segment(layout.SegmentID(id)); !t.needed(s, v) {
			t.refile(s, v)
		}
		seen++
		return seen < MaxSegmentList
	})
	if seen < MaxSegmentList {
		v.Freeing, v.FreeAgain, v.FreeAfter = v.FreeAgain, false, 0
	}
	t.putVolume(v)
	return nil
}

func (c HoldTag) check() error {
	if err := checkFrozenRef("hold tag", c.Volume, c.Name); err != nil {
		return err
	}
	return errs.As(layout.CheckName("holder", c.By), errs.InvalidArgument, "hold tag")
}

func (c HoldTag) apply(t *tables, r *Result) error {
	f, err := t.resolveFrozen("hold tag", c.Volume, c.Name)
	if err != nil {
		return err
	}
	op := fmt.Sprintf("hold tag %s", c.Name)
	r.Volume = f.Volume
	at, held := slices.BinarySearch(f.Holds, c.By)
	switch {
	case f.Kind != TagSnapshot:
		return errs.New(errs.InvalidArgument, op, "it is a %v; only tags are held", f.Kind).WithHint("make a tag: `strake tag create`")
	case held != c.Release:
		r.Repeat = true
		return nil
	case len(f.Holds) == MaxHolds && !c.Release:
		return errs.New(errs.TooLarge, op, "it is held by %d already", MaxHolds).WithHint("`strake tag release` gives up what nobody needs any more")
	case c.Release:
		f.Holds = slices.Delete(slices.Clone(f.Holds), at, at+1)
	default:
		f.Holds = slices.Insert(slices.Clone(f.Holds), at, c.By)
	}
	t.putFrozen(f)
	r.emit(TagHeld{Snapshot: f.ID, By: c.By, Released: c.Release})
	return nil
}

func (c MarkTagReady) check() error {
	if len(c.Digest) != DigestBytes {
		return errs.New(errs.InvalidArgument, "mark tag ready", "a digest of %d bytes, not %d", len(c.Digest), DigestBytes)
	}
	return nil
}

// apply records a tag's digest. Two computations of one tag agree, or one of
// them is wrong.
func (c MarkTagReady) apply(t *tables, r *Result) error {
	f := t.snapshotOf(c.Snapshot)
	if f == nil || f.Removed {
		r.Repeat = true // removed meanwhile
		return nil
	}
	r.Volume = f.Volume
	if f.Digest != nil {
		if !slices.Equal(f.Digest, c.Digest) || f.Blocks != c.Blocks {
			return errs.New(errs.Conflict, "mark tag ready", "tag %s has digest %x of %d blocks, not %x of %d", f.Name, f.Digest, f.Blocks, c.Digest, c.Blocks).
				WithHint("verify the tag: its bytes may have changed, which must never be")
		}
		r.Repeat = true
		return nil
	}
	if f.Kind != TagSnapshot {
		return errs.New(errs.InvalidArgument, "mark tag ready", "%s is a %v and no tag", f.Name, f.Kind)
	}
	f.Digest, f.Blocks = slices.Clone(c.Digest), c.Blocks
	t.putFrozen(f)
	r.emit(TagReady{Snapshot: f.ID})
	return nil
}
