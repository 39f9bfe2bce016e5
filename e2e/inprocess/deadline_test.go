package inprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/internal/vfs"
)

// TestADeadlineThatTheDevicesCannotMeetIsRefusedAsOne reads with less time than each
// device takes. Sooner or later the servers know that and say so before they begin;
// what the caller hears is a deadline, whoever noticed first.
func TestADeadlineThatTheDevicesCannotMeetIsRefusedAsOne(t *testing.T) {
	long(t)
	var slow switched
	c := Start(t, Options{Disk: func(int) (vfs.FS, error) {
		return vfs.NewShape(vfs.NewMem(vfs.MemOptions{Capacity: 1 << 40}), vfs.ShapeSpec{Latency: time.Second}, &slow), nil
	}})
	_, v := volume(t, c, 16*mib, 4, 2)
	write(t, v, pattern(1, 4*mib), 0)
	flush(t, v)
	slow.on.Store(true)
	buf := make([]byte, 4096)
	c.Eventually("a server refuses a read that it can't do in time", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := v.ReadAtContext(ctx, buf, 0)
		if !errors.Is(err, client.ErrDeadline) {
			t.Fatalf("a read without the time for it: %v", err)
		}
		if !strings.Contains(err.Error(), "can't serve this before its deadline") {
			return fmt.Errorf("the newest answer: %w", err)
		}
		return nil
	})
	slow.on.Store(false)
	holds(t, v, pattern(1, 4*mib), 0)
	closed(t, v)
}
