package inprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strake/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	block = 4096
	mib   = 1 << 20
)

// create makes a volume.
func create(t *testing.T, cell *client.Cell, name string, size int64, k, m int) {
	t.Helper()
	if _, err := cell.CreateVolume(t.Context(), name, client.VolumeOptions{Size: size, K: k, M: m}); err != nil {
		t.Fatal(err)
	}
}

// open opens a volume and closes it, without asking how that went, when the test
// ends.
func open(t *testing.T, cell *client.Cell, name string, o client.OpenOptions) *client.Volume {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	v, err := cell.Open(ctx, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var writing, forced = client.OpenOptions{Write: true}, client.OpenOptions{Write: true, Force: true}

// volume starts a client with a fresh volume that is open for writing.
func volume(t *testing.T, c *Cell, size int64, k, m int) (*client.Cell, *client.Volume) {
	t.Helper()
	cell := c.Dial()
	create(t, cell, "v", size, k, m)
	return cell, open(t, cell, "v", writing)
}

// pattern gives n bytes that tell where they belong and which write they are of.
func pattern(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	r.Read(b)
	return b
}

func write(t *testing.T, v *client.Volume, p []byte, off int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if n, err := v.WriteAtContext(ctx, p, off); n != len(p) || err != nil {
		t.Fatalf("wrote %d of %d bytes at %d: %v", n, len(p), off, err)
	}
}

func flush(t *testing.T, v *client.Volume) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := v.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, v *client.Volume) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := v.CloseContext(ctx); err != nil {
		t.Fatal(err)
	}
}

// holds checks that a volume reads as wanted from off on.
func holds(t *testing.T, v *client.Volume, want []byte, off int64) {
	t.Helper()
	if err := reads(t.Context(), v, want, off); err != nil {
		t.Fatal(err)
	}
}

func reads(ctx context.Context, v *client.Volume, want []byte, off int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := make([]byte, len(want))
	if n, err := v.ReadAtContext(ctx, got, off); n != len(want) || err != nil {
		return fmt.Errorf("read %d of %d bytes at %d: %w", n, len(want), off, err)
	}
	if i := firstDifference(got, want); i >= 0 {
		return fmt.Errorf("at %d: got %x, want %x", off+int64(i), got[i:min(i+8, len(got))], want[i:min(i+8, len(got))])
	}
	return nil
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// fails checks that an error is of one of the kinds wanted.
func fails(t *testing.T, what string, err error, kinds ...error) {
	t.Helper()
	for _, k := range kinds {
		if errors.Is(err, k) {
			return
		}
	}
	t.Errorf("%s: got %v, want one of %v", what, err, kinds)
}

// within runs f and checks how long it took.
func within(t *testing.T, bound time.Duration, what string, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > bound {
		t.Errorf("%s took %v, want at most %v", what, took, bound)
	}
}

// long skips a test that takes its time.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
}
