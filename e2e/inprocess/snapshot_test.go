package inprocess

import (
	"fmt"
	"strings"
	"testing"

	"strake/client"
)

func freeze(t *testing.T, cell *client.Cell, names ...string) []client.SnapshotInfo {
	t.Helper()
	list, err := cell.CreateSnapshots(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func unfreeze(t *testing.T, cell *client.Cell, name string) {
	t.Helper()
	if err := cell.RemoveSnapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// frozenAs checks what a snapshot or volume holds, opened anew for reading.
func frozenAs(t *testing.T, cell *client.Cell, name string, want []byte, off int64) {
	t.Helper()
	v := open(t, cell, name, client.OpenOptions{})
	holds(t, v, want, off)
	closed(t, v)
}

func TestASnapshotOfAVolumeThatIsWrittenElsewhereStaysAsItWas(t *testing.T) {
	c := Start(t, Options{})
	_, v := volume(t, c, 64*mib, 4, 2)
	admin := c.Dial()
	old, fresh := pattern(1, 9*mib+4096), pattern(2, 9*mib+4096)
	write(t, v, old, 0)
	s := freeze(t, admin, "v@a")[0] // not flushed by its writer
	if s.Name != "v@a" || s.Kind != "snapshot" || s.Size != 64*mib {
		t.Errorf("made %+v", s)
	}
	write(t, v, fresh, 0)
	if err := v.Discard(t.Context(), 0, 4*mib); err != nil {
		t.Fatal(err)
	}
	flush(t, v)
	frozenAs(t, admin, "v@a", old, 0)
	freeze(t, admin, "v@b")
	closed(t, v)
	frozenAs(t, admin, "v@a", old, 0)
	frozenAs(t, admin, "v@b", make([]byte, 4*mib), 0)
	frozenAs(t, admin, "v@b", fresh[4*mib:], 4*mib)
	_, err := admin.CreateSnapshots(t.Context(), "v@a")
	fails(t, "a name twice", err, client.ErrExists)
	_, err = admin.Open(t.Context(), "v@a", client.OpenOptions{Write: true})
	fails(t, "write a snapshot", err, client.ErrReadOnly)
	_, err = admin.OpenSnapshot(t.Context(), "v@c")
	fails(t, "open what is not there", err, client.ErrNotFound)
}

func TestASnapshotOfAVolumeWhoseWriterCrashedHoldsWhatWasFlushed(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 64*mib, 4, 2)
	want := pattern(3, 5*mib)
	write(t, v, want, 0)
	flush(t, v)
	cell.Abandon()
	admin := c.Dial()
	c.Eventually("the session is over", func() error {
		if info, err := admin.Volume(t.Context(), "v"); err != nil || info.Holder != "" {
			return fmt.Errorf("%+v %v", info, err)
		}
		return nil
	})
	freeze(t, admin, "v@a")
	frozenAs(t, admin, "v@a", want, 0)
	w := open(t, admin, "v", writing)
	write(t, w, pattern(4, 5*mib), 0)
	closed(t, w)
	frozenAs(t, admin, "v@a", want, 0)
}

func TestAGroupOfSnapshotsIsMadeAsAWholeOrNotAtAll(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, 4*mib, 1, 1)
	create(t, cell, "w", 4*mib, 1, 1)
	want := pattern(1, mib)
	write(t, v, want, 0)
	_, err := cell.CreateSnapshots(t.Context(), "v@a", "none@a")
	fails(t, "one of two is missing", err, client.ErrNotFound)
	if list := freeze(t, cell, "v@a", "w@a"); len(list) != 2 || list[1].Name != "w@a" {
		t.Errorf("made %+v", list)
	}
	frozenAs(t, cell, "v@a", want, 0)
	frozenAs(t, cell, "w@a", make([]byte, mib), 0)
}

// TestAWriterThatDoesNotFlushIsNamed stops so many servers that nothing can be
// flushed: the snapshot is refused within its bound, and says who holds it up.
func TestAWriterThatDoesNotFlushIsNamed(t *testing.T) {
	long(t)
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, 16*mib, 2, 1)
	write(t, v, pattern(1, mib), 0)
	for _, d := range c.Chunkds {
		d.Pause()
	}
	done := v.WriteAsync(pattern(2, mib), 0)
	_, err := c.Dial().CreateSnapshots(t.Context(), "v@a")
	fails(t, "no server answers", err, client.ErrLeaseHeld)
	if !strings.Contains(err.Error(), "session ") {
		t.Errorf("nobody is named: %v", err)
	}
	for _, d := range c.Chunkds {
		d.Resume()
	}
	if err := done.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
}

func TestClonesOfClonesHoldWhatTheyBeganAsAndGoTheirOwnWays(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	base := pattern(1, 2*mib)
	write(t, v, base, 0)
	flush(t, v)
	const deep = 8
	name, mine := "v", [][]byte{base}
	for i := range deep {
		freeze(t, cell, name+"@s")
		next := fmt.Sprintf("c%d", i)
		info, err := cell.CloneVolume(t.Context(), name+"@s", next)
		if err != nil || info.Origin != name+"@s" {
			t.Fatalf("%+v %v", info, err)
		}
		name = next
		w := open(t, cell, name, writing)
		for j, was := range mine {
			holds(t, w, was, int64(j)*mib+int64(min(j, 1))*mib)
		}
		part := pattern(uint64(10+i), mib)
		write(t, w, part, int64(i+2)*mib)
		mine = append(mine, part)
		closed(t, w)
	}
	write(t, v, pattern(99, 2*mib), 0)
	closed(t, v)
	frozenAs(t, cell, name, base, 0)
	if err := cell.RemoveVolume(t.Context(), "v", true); err != nil {
		t.Fatal(err)
	}
	frozenAs(t, cell, name, base, 0)
	for i := range deep - 1 {
		if err := cell.RemoveVolume(t.Context(), fmt.Sprintf("c%d", i), true); err != nil {
			t.Fatal(err)
		}
	}
	for j, was := range mine[1:] {
		frozenAs(t, cell, name, was, int64(j+2)*mib)
	}
	if err := cell.RemoveVolume(t.Context(), name, true); err != nil {
		t.Fatal(err)
	}
	allGone(t, c, cell)
}

// allGone waits until the cell holds no segment any more.
func allGone(t *testing.T, c *Cell, cell *client.Cell) {
	t.Helper()
	c.Eventually("all segments are deleted", func() error {
		s, err := cell.Status(t.Context())
		if err != nil || s.Segments > 0 {
			return fmt.Errorf("%d segments, %v", s.Segments, err)
		}
		return nil
	})
}

func TestRollbackKeepsWhatTheVolumeWas(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	one, two, three := pattern(1, mib), pattern(2, mib), pattern(3, mib)
	write(t, v, one, 0)
	freeze(t, cell, "v@one")
	write(t, v, two, 0)
	other := c.Dial()
	_, _, err := other.RollbackVolume(t.Context(), "v@one", false)
	fails(t, "somebody writes", err, client.ErrLeaseHeld)
	flush(t, v)
	_, _, err = other.RollbackVolume(t.Context(), "v@on", true)
	fails(t, "to what there is not, by force", err, client.ErrNotFound)
	write(t, v, two, 0)
	flush(t, v) // its writer goes on
	_, kept, err := other.RollbackVolume(t.Context(), "v@one", true)
	if err != nil {
		t.Fatal(err)
	}
	frozenAs(t, other, "v", one, 0)
	frozenAs(t, other, kept.Name, two, 0)
	_, err = v.WriteAt(three, 0)
	if err == nil {
		err = v.Flush(t.Context())
	}
	fails(t, "write after the rollback", err, client.ErrLeaseLost, client.ErrStaleEpoch)
	w := open(t, other, "v", writing)
	write(t, w, three, 2*mib)
	freeze(t, other, "v@three")
	closed(t, w)
	if _, _, err := other.RollbackVolume(t.Context(), kept.Name, false); err != nil {
		t.Fatal(err)
	}
	frozenAs(t, other, "v", two, 0)
	frozenAs(t, other, "v", make([]byte, mib), 2*mib)
	frozenAs(t, other, "v@three", three, 2*mib)
	frozenAs(t, other, "v@one", one, 0)
	list, _, err := other.Snapshots(t.Context(), "v", 0, 0, false)
	if err != nil || len(list) != 4 {
		t.Errorf("%d snapshots: %+v %v", len(list), list, err)
	}
	if err := other.RemoveVolume(t.Context(), "v", true); err != nil {
		t.Fatal(err)
	}
	allGone(t, c, other)
}

func TestARemovedSnapshotIsReadableWhileItIsOpenAndItsSpaceComesBackAfter(t *testing.T) {
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{CloseHeaders: 1}}})
	cell, v := volume(t, c, 16*mib, 4, 2)
	old := pattern(1, 8*mib)
	write(t, v, old, 0)
	freeze(t, cell, "v@a")
	closed(t, v)
	v = open(t, cell, "v", writing)
	write(t, v, pattern(2, 8*mib), 0)
	closed(t, v)
	v = open(t, cell, "v", writing) // its root retires what the last one could not
	write(t, v, pattern(3, mib), 0)
	closed(t, v)
	s, err := cell.Snapshot(t.Context(), "v@a")
	if err != nil || s.FreesBytes < 8*mib {
		t.Errorf("removing it would free %d bytes, %v", s.FreesBytes, err)
	}
	reader := open(t, cell, "v@a", client.OpenOptions{})
	unfreeze(t, cell, "v@a")
	before, _ := cell.Volume(t.Context(), "v")
	holds(t, reader, old, 0)
	closed(t, reader)
	c.Eventually("the snapshot's space comes back", func() error {
		now, err := cell.Volume(t.Context(), "v")
		if err != nil || now.StoredBytes+8*mib > before.StoredBytes {
			return fmt.Errorf("%d bytes are stored, %d were, %v", now.StoredBytes, before.StoredBytes, err)
		}
		return nil
	})
}

// readyTag waits until a tag has its digest.
func readyTag(t *testing.T, c *Cell, cell *client.Cell, name string) (tag client.SnapshotInfo) {
	t.Helper()
	c.Eventually("the digest of "+name+" stands", func() (err error) {
		if tag, err = cell.Snapshot(t.Context(), name); err == nil && !tag.Ready {
			err = fmt.Errorf("%+v", tag)
		}
		return err
	})
	return tag
}

// TestATagsDigestTellsItsContentAndNotItsPlace writes the same content in two
// ways: one digest; other content has another.
func TestATagsDigestTellsItsContentAndNotItsPlace(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	create(t, cell, "w", 32*mib, 2, 1)
	w := open(t, cell, "w", writing)
	content := pattern(1, 3*mib)
	write(t, v, content, mib)
	for at := 0; at < len(content); at += 64 << 10 {
		write(t, w, pattern(2, 64<<10), mib+int64(at))
		write(t, w, content[at:][:64<<10], mib+int64(at))
	}
	write(t, w, pattern(3, mib), 8*mib)
	if err := w.Discard(t.Context(), 8*mib, mib/2); err != nil {
		t.Fatal(err)
	}
	write(t, w, make([]byte, mib/2), 8*mib+mib/2) // zeros that are written
	if _, err := cell.CreateTags(t.Context(), "v@t", "w@t"); err != nil {
		t.Fatal(err)
	}
	write(t, w, pattern(4, block), 0)
	if _, err := cell.CreateTags(t.Context(), "w@other"); err != nil {
		t.Fatal(err)
	}
	one, two, other := readyTag(t, c, cell, "v@t"), readyTag(t, c, cell, "w@t"), readyTag(t, c, cell, "w@other")
	if one.Digest != two.Digest || one.Digest == other.Digest || one.Content != 3*mib {
		t.Errorf("digests %s, %s and %s", one.Digest, two.Digest, other.Digest)
	}
	r, err := cell.VerifyTag(t.Context(), "w@t", func(int64) {})
	if err != nil || r.Digest != two.Digest || !r.Ready || r.Content != 3*mib || r.Bytes != 32*mib {
		t.Errorf("%+v %v", r, err)
	}
	byDigest, err := cell.OpenDigest(t.Context(), "", one.Digest)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, byDigest, content, mib)
	closed(t, byDigest)
	frozenAs(t, cell, "w@"+one.Digest, content, mib)
	_, err = cell.OpenDigest(t.Context(), "another", one.Digest)
	fails(t, "another tenant's digest", err, client.ErrNotFound)
	_, err = cell.Open(t.Context(), "v@"+other.Digest, client.OpenOptions{})
	fails(t, "another volume's digest", err, client.ErrNotFound)
	if again, err := cell.VerifyTag(t.Context(), "v@"+one.Digest, nil); err != nil || again.Digest != one.Digest {
		t.Errorf("%+v %v", again, err)
	}
	digest := "v@" + one.Digest
	if _, err := cell.HoldTag(t.Context(), digest, "job"); err != nil {
		t.Fatal(err)
	}
	fails(t, "remove a tag that is held", cell.RemoveSnapshot(t.Context(), "v@t"), client.ErrBusy)
	fails(t, "remove its volume", cell.RemoveVolume(t.Context(), "v", false), client.ErrLeaseHeld, client.ErrBusy)
	if _, err := cell.ReleaseTag(t.Context(), "v@t", "job"); err != nil {
		t.Fatal(err)
	}
	if _, err := cell.CloneVolume(t.Context(), digest, "clone"); err != nil {
		t.Fatal(err)
	}
	frozenAs(t, cell, "clone", content, mib)
	unfreeze(t, cell, digest)
	_, err = cell.Snapshot(t.Context(), "v@t")
	fails(t, "look up what was removed by its digest", err, client.ErrNotFound)
}

func TestDiffListsTheRangesWhoseContentDiffers(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	write(t, v, pattern(1, 4*mib), 0)
	freeze(t, cell, "v@a")
	write(t, v, pattern(1, 4*mib)[mib:2*mib], mib) // the same content elsewhere
	write(t, v, pattern(2, 3*block), 2*mib)
	write(t, v, pattern(3, block), 2*mib+3*block)
	if err := v.Discard(t.Context(), 3*mib, 2*block); err != nil {
		t.Fatal(err)
	}
	write(t, v, pattern(4, 100), 15*mib)
	freeze(t, cell, "v@b")
	var got []string
	err := cell.Diff(t.Context(), "v@a", "v@b", func(off, n int64) error {
		got = append(got, fmt.Sprintf("%d+%d", off/block, n/block))
		return nil
	})
	if want := "[512+4 768+2 3840+1]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("blocks %v, %v; want %s", got, err, want)
	}
}
