package inprocess

import (
	"fmt"
	"strings"
	"testing"

	"strake/client"
)

// TestASnapshotOutlastsARecoveryThatSeesNotAllShards freezes a volume while it is
// written; then its writer dies, and with it a server. No stripe header says that the
// last stripes are flushed: what is frozen must be found all the same, wherever the
// recovery puts it.
func TestASnapshotOutlastsARecoveryThatSeesNotAllShards(t *testing.T) {
	c := Start(t, Options{Chunkds: 4})
	cell, v := volume(t, c, 16*mib, 2, 1)
	admin := c.Dial()
	want := pattern(1, 2*mib)
	for at := int64(0); at < 2*mib; at += 64 << 10 {
		write(t, v, want[at:][:64<<10], at)
	}
	freeze(t, admin, "v@a")
	cell.Abandon()
	c.Chunkds[0].Kill()
	w := open(t, admin, "v", forced)
	holds(t, w, want, 0)
	frozenAs(t, admin, "v@a", want, 0)
	write(t, w, pattern(2, 2*mib), 0)
	closed(t, w)
	frozenAs(t, admin, "v@a", want, 0)
	c.Chunkds[0].Restart()
	c.WaitUp(admin, 4)
	frozenAs(t, admin, "v@a", want, 0)
	c.Eventually("the volume is whole", func() error {
		s, err := admin.Status(t.Context())
		if err != nil || s.Health != "healthy" {
			return fmt.Errorf("%+v %v", s, err)
		}
		return nil
	})
}

// TestALossThatReachesBelowASnapshotIsAcceptedOnceTheSnapshotIsGone leaves one of three
// servers, which can't read anything back, and a snapshot of what is lost.
func TestALossThatReachesBelowASnapshotIsAcceptedOnceTheSnapshotIsGone(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	cell, v := volume(t, c, 4*mib, 2, 1)
	for i := range int64(4) {
		write(t, v, pattern(uint64(i), 64<<10), i<<16)
	}
	admin := c.Dial()
	freeze(t, admin, "v@a")
	cell.Abandon()
	KillAll(c.Chunkds[:2]...)
	c.Eventually("its session is over", func() error {
		if info, err := admin.Volume(t.Context(), "v"); err != nil || info.Holder != "" {
			return fmt.Errorf("%+v %v", info, err)
		}
		return nil
	})
	accept := client.RecoverOptions{AcceptLoss: true, Commit: true}
	_, err := admin.RecoverVolume(t.Context(), "v", accept)
	fails(t, "a loss below a snapshot", err, client.ErrUndecided, client.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "snapshot holds all up to seq") {
		t.Errorf("the snapshot is not named: %v", err)
	}
	unfreeze(t, admin, "v@a")
	r, err := admin.RecoverVolume(t.Context(), "v", accept)
	if err != nil || !r.Done || r.Cut != 0 {
		t.Fatalf("%+v %v", r, err)
	}
}

// TestAHandleThatIsOpenedWhileAnotherIsClosedKeepsItsSnapshot: both are of one session,
// whose pin on the snapshot the last handle gives up.
func TestAHandleThatIsOpenedWhileAnotherIsClosedKeepsItsSnapshot(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	cell, v := volume(t, c, 4*mib, 2, 1)
	freeze(t, cell, "v@a")
	closed(t, v)
	one := open(t, cell, "v@a", client.OpenOptions{})
	for range 300 {
		over := make(chan error, 1)
		go func() { over <- one.Close() }()
		two := open(t, cell, "v@a", client.OpenOptions{})
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		if s, err := cell.Snapshot(t.Context(), "v@a"); err != nil || !s.Open {
			t.Fatalf("it is open: %+v %v", s, err)
		}
		one = two
	}
	closed(t, one)
	if s, err := cell.Snapshot(t.Context(), "v@a"); err != nil || s.Open {
		t.Errorf("nobody reads it: %+v %v", s, err)
	}
}
