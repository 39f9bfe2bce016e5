package replica

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strake/internal/vfs"
)

// faultTiming makes a member of one elect itself at once.
var faultTiming = Timing{Heartbeat: 20 * time.Millisecond, Commit: time.Millisecond, RPC: time.Second, Watchdog: time.Minute,
	SnapshotInterval: time.Hour, TrailingLogs: 4, LogFile: 16 << 10}

// life runs a whole member on a disk: it forms a group of one, or goes on; takes
// commands, snapshots in between, and is closed. It gives what was acknowledged, and
// whether the process was told to end.
func life(t *testing.T, fs vfs.FS, name string) (acknowledged []string, ended bool) {
	m := newMember(t)
	m.fs, m.timing = fs, faultTiming
	if err := m.open(); err != nil {
		return nil, true
	}
	defer m.stop()
	members := []string{m.addr}
	if m.HasState() {
		members = nil
	}
	if err := m.Start(members); err != nil {
		return nil, true
	}
	leads := false
	eventually(t, "it leads or ends", func() bool {
		leads = m.Leading() == nil
		return leads || len(m.fatal) > 0
	})
	for i := 0; leads && i < 24; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		command := fmt.Sprintf("%s%d", name, i)
		_, err := m.Propose(ctx, []byte(command))
		if ctx.Err() != nil {
			t.Errorf("propose %d hangs", i)
		}
		cancel()
		if err != nil {
			break
		}
		acknowledged = append(acknowledged, command)
		if i%10 == 9 {
			_ = m.raft.Snapshot().Error() // one that fails costs nothing but a longer log
		}
	}
	if leads && len(acknowledged) < 24 {
		eventually(t, "a member that refuses ends", func() bool { return len(m.fatal) > 0 })
	}
	return acknowledged, len(m.fatal) > 0
}

// TestAMemberWhoseDiskFailsAtAnyCallEndsAndLosesNothing: the n-th call of the disk
// fails, for every n of a member's life: no command that was acknowledged is lost, no
// call hangs, no goroutine stays (see TestMain), and a member that can't write ends.
func TestAMemberWhoseDiskFailsAtAnyCallEndsAndLosesNothing(t *testing.T) {
	whole := vfs.NewFault(vfs.NewMem(vfs.MemOptions{}))
	if acknowledged, ended := life(t, whole, "a"); len(acknowledged) != 24 || ended {
		t.Fatalf("without a fault: %d acknowledged, ended %v", len(acknowledged), ended)
	}
	calls, step := whole.Ops(), int64(1)
	if testing.Short() {
		step = 11
	}
	var ends atomic.Int64
	t.Run("call", func(t *testing.T) {
		for n := int64(1); n <= calls; n += step {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				mem := vfs.NewMem(vfs.MemOptions{})
				fault := vfs.NewFault(mem)
				fault.FailAt(n, syscall.EIO)
				acknowledged, ended := life(t, fault, "a")
				if ended {
					ends.Add(1)
				}
				afterwards(t, mem.Crash(nil, 0), acknowledged)
			})
		}
	})
	if ends.Load() == 0 {
		t.Errorf("none of %d faults ended a member", calls)
	}
}

// afterwards starts a member on what a crash left and wants all that was acknowledged,
// in its order.
func afterwards(t *testing.T, fs vfs.FS, acknowledged []string) {
	t.Helper()
	m := newMember(t)
	m.fs, m.timing = fs, faultTiming
	if marker, err := readMarker(fs); err == nil && marker.Member != "" {
		m.addr = marker.Member
	}
	if err := m.open(); err != nil {
		t.Fatalf("what the fault left can't be opened: %v", err)
	}
	var members []string
	if !m.HasState() {
		if len(acknowledged) > 0 || m.Wiped() {
			t.Fatalf("%d commands were acknowledged, wiped %v, and there is no state", len(acknowledged), m.Wiped())
		}
		members = []string{m.addr} // the group was not made: it can be made now
	}
	if err := m.Start(members); err != nil {
		t.Fatal(err)
	}
	leaderOf(t, m)
	got := m.list.all()
	if len(got) < len(acknowledged) || !slices.Equal(got[:len(acknowledged)], acknowledged) {
		t.Fatalf("acknowledged %q, got %q", acknowledged, got)
	}
}
