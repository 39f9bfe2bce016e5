package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/internal/dial"
	"strake/internal/tls"
	"strake/proto/pb"
)

func TestASecondWriterIsToldWhoWrites(t *testing.T) {
	c := Start(t, Options{Chunkds: 2, Client: client.Config{Owner: "first of all"}})
	cell, v := volume(t, c, mib, 1, 1)
	for who, other := range map[string]*client.Cell{"this process": cell, "another": c.Dial()} {
		_, err := other.Open(t.Context(), "v", writing)
		fails(t, who, err, client.ErrLeaseHeld)
		if err == nil || !strings.Contains(err.Error(), "first of all") {
			t.Errorf("%s: the holder is not named: %v", who, err)
		}
	}
	write(t, v, pattern(1, 100), 0)
	closed(t, v)
	closed(t, open(t, c.Dial(), "v", writing))
}

// TestATakeoverShutsTheOldHandleOut checks that a deposed handle fails typed, and
// that nothing it says was done is missing.
func TestATakeoverShutsTheOldHandleOut(t *testing.T) {
	for _, where := range []string{"another process", "the same process"} {
		t.Run(where, func(t *testing.T) {
			c := Start(t, Options{Chunkds: 3})
			first, old := volume(t, c, mib, 2, 1)
			want := pattern(1, 64<<10)
			write(t, old, want, 0)
			flush(t, old)
			second := first
			if where == "another process" {
				second = c.Dial()
			}
			v := open(t, second, "v", forced)
			holds(t, v, want, 0)
			newer := pattern(2, 64<<10)
			write(t, v, newer, 0)
			flush(t, v)
			_, err := old.WriteAt(make([]byte, block), 512<<10)
			if err == nil { // acknowledged by memory alone: then a flush must tell
				err = old.Flush(t.Context())
			}
			fails(t, "the old handle's write", err, client.ErrStaleEpoch, client.ErrLeaseLost)
			c.Eventually("the old handle reads no more", func() error {
				_, err := old.ReadAt(make([]byte, block), 0)
				if err == nil {
					return fmt.Errorf("it reads")
				}
				fails(t, "the old handle's read", err, client.ErrStaleEpoch, client.ErrLeaseLost)
				return nil
			})
			fails(t, "the old handle's flush", old.Flush(t.Context()), client.ErrStaleEpoch, client.ErrLeaseLost)
			if old.Close() == nil {
				t.Error("the old handle closed as if all was well")
			}
			holds(t, v, newer, 0)
			holds(t, v, make([]byte, block), 512<<10)
			closed(t, v)
		})
	}
}

// TestAnOpenThatIsGivenUpLeavesNoLease gives opens up at moments all along their way:
// whether or not the metadata service had carried them out, nobody holds the volume then.
func TestAnOpenThatIsGivenUpLeavesNoLease(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, mib, 1, 1)
	closed(t, v)
	gaveUp := 0
	for i := range 80 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		v, err := cell.Open(ctx, "v", writing)
		cancel()
		if err == nil {
			closed(t, v)
			continue
		}
		gaveUp++
		if info, err := cell.Volume(t.Context(), "v"); err != nil || info.Holder != "" {
			t.Fatalf("open %d: %+v %v", i, info, err)
		}
	}
	t.Logf("%d of 80 opens were given up", gaveUp)
	if gaveUp == 0 {
		t.Error("none was given up: time more of them shorter")
	}
}

// TestAnEndedSessionCostsItsVolumesAndNoMore ends a client's session behind its
// back: what it wrote fails typed, and it can open the volume again.
func TestAnEndedSessionCostsItsVolumesAndNoMore(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, mib, 1, 1)
	want := pattern(1, block)
	write(t, v, want, 0)
	flush(t, v)
	endSession(t, c, "v")
	c.Eventually("the handle has lost its lease", func() error {
		_, err := v.WriteAt(want, block)
		if err == nil {
			return fmt.Errorf("it writes")
		}
		fails(t, "write", err, client.ErrLeaseLost, client.ErrStaleEpoch)
		return nil
	})
	c.Eventually("the client opens the volume again", func() (err error) {
		v, err = cell.Open(t.Context(), "v", writing)
		return err
	})
	holds(t, v, want, 0)
	write(t, v, want, block)
	closed(t, v)
}

// endSession ends the session that holds a volume's lease.
func endSession(t *testing.T, c *Cell, name string) {
	t.Helper()
	ask(t, c, func(ctx context.Context, m pb.MetaClient) error {
		r, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Name: name, Tenant: "default"})
		if err == nil {
			_, err = m.CloseSession(ctx, &pb.CloseSessionRequest{Session: r.Volume.HolderSession})
		}
		return err
	})
}

// ask calls the metadata service behind the client's back.
func ask(t testing.TB, c *Cell, call func(context.Context, pb.MetaClient) error) {
	t.Helper()
	meta, err := dial.NewMeta(c.Address, tls.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	defer meta.Close()
	if err := meta.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
}

func TestACloseLeavesNothingToRecover(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	cell, v := volume(t, c, 16*mib, 2, 1)
	var h history
	h.run(t, rand.New(rand.NewPCG(1, 1)), v, 500, 1500)
	if info, err := cell.Volume(t.Context(), "v"); err != nil || info.State != "open" {
		t.Errorf("while it is open: %+v, %v", info, err)
	}
	closed(t, v)
	info, err := cell.Volume(t.Context(), "v")
	if err != nil || info.Unsealed != 0 || info.Holder != "" || info.State != "idle" {
		t.Errorf("after the close: %+v, %v", info, err)
	}
	h.flushed = len(h.blocks)
	v = open(t, cell, "v", writing)
	if err := h.check(t.Context(), v, 500); err != nil {
		t.Error(err)
	}
	if again, err := cell.Volume(t.Context(), "v"); err != nil || again.Epoch != info.Epoch+1 {
		t.Errorf("epoch %d after %d, %v", again.Epoch, info.Epoch, err)
	}
	closed(t, v)
}

// TestAnAbandonedVolumeIsRecovered lets a janitor find a volume whose writer is gone.
func TestAnAbandonedVolumeIsRecovered(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Chunkds: 4})
	cell, v := volume(t, c, 16*mib, 2, 1)
	var h history
	h.run(t, rand.New(rand.NewPCG(2, 2)), v, 500, 1000)
	cell.Abandon()
	watch := c.Dial()
	c.Within(60*time.Second, "a janitor recovers the volume", func() error {
		info, err := watch.Volume(t.Context(), "v")
		if err == nil && (info.State != "idle" || info.Unsealed != 0) {
			err = fmt.Errorf("it is %s with %d unsealed segments", info.State, info.Unsealed)
		}
		return err
	})
	v = open(t, watch, "v", client.OpenOptions{})
	if err := h.check(t.Context(), v, 500); err != nil {
		t.Error(err)
	}
}
