package chunkd

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// TestABrokenDeviceDoesNotStopTheOthers: it is told, left out of the registration,
// and back when it is whole again.
func TestABrokenDeviceDoesNotStopTheOthers(t *testing.T) {
	m, d := startMeta(t), disks{}
	if err := started(t, d.config(m, "a", "b", "c", "d")).Close(); err != nil {
		t.Fatal(err)
	}
	all := <-m.registered
	if err := d["b"].Remove("SUPERBLOCK"); err != nil { // then it looks new, and holds files all the same
		t.Fatal(err)
	}
	marker := ""
	names, err := d["c"].List("index")
	for _, n := range names {
		if strings.HasPrefix(n, "marker.manifest") {
			marker = "index/" + n
		}
	}
	if err = errors.Join(err, d["c"].Rename(marker, "kept")); err != nil { // the index is lost
		t.Fatal(err)
	}
	var log bytes.Buffer
	cfg := d.config(m, "a", "c", "d")
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	below := cfg.FS
	cfg.FS = func(dir string) (vfs.FS, error) {
		if dir == "d" {
			return nil, fs.ErrNotExist // not mounted
		}
		return below(dir)
	}
	s := started(t, cfg)
	got := <-m.registered
	if len(got.Devices) != 1 || !bytes.Equal(got.Devices[0].Uuid, all.Devices[0].Uuid) {
		t.Errorf("registered %v", got.Devices)
	}
	for _, want := range []string{"path=c", "path=d"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says nothing of %s: %s", want, &log)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d["c"].Rename("kept", marker); err != nil {
		t.Fatal(err)
	}
	started(t, d.config(m, "a", "c", "d"))
	if again := <-m.registered; len(again.Devices) != 3 {
		t.Errorf("whole again, registered %v", again.Devices)
	}
	// A directory that holds something else is the operator's mistake, not a fault.
	if _, err := Start(t.Context(), d.config(m, "a", "b")); err == nil {
		t.Error("a directory with files and no superblock was taken")
	}
}

func TestWithoutAnyDeviceThatWorksThereIsNoServer(t *testing.T) {
	m, d := startMeta(t), disks{}
	cfg := d.config(m, "a")
	cfg.FS = func(string) (vfs.FS, error) { return nil, fs.ErrNotExist }
	if _, err := Start(t.Context(), cfg); !errors.Is(err, errs.NotFound) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestADeviceThatIsTooSmallIsRefusedAtItsFirstStart(t *testing.T) {
	m := startMeta(t)
	d := disks{"a": vfs.NewMem(vfs.MemOptions{Capacity: 64 << 20})}
	if _, err := Start(t.Context(), d.config(m, "a")); !errors.Is(err, errs.InvalidArgument) || !strings.Contains(err.Error(), "device a") {
		t.Errorf("got %v", err)
	}
	if names, err := d["a"].List("."); err != nil || len(names) > 1 { // the lock file
		t.Errorf("it was written to: %v, %v", names, err)
	}
}
