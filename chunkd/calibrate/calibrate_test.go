package calibrate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// shaped is a file on an emulated device, in the time of a synctest bubble.
type shaped struct {
	vfs.File
	size int64
}

func (f *shaped) Size() int64 { return f.size }

func (f *shaped) Write(p []byte, off int64, durable bool) error {
	_, err := f.WriteDirect(p, off, durable)
	return err
}

func (f *shaped) Read(p []byte, off int64) error {
	_, err := f.ReadAt(p, off)
	return err
}

func emulated(t *testing.T, spec string, scheduler sched.Scheduler) Device {
	t.Helper()
	shape, err := vfs.ParseShape(spec)
	if err != nil {
		t.Fatal(err)
	}
	fsys := vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), shape, nil)
	return Device{Sched: scheduler, New: func(size int64, enough func() bool) (File, error) {
		f, err := fsys.Create("trial")
		if err != nil {
			return nil, err
		}
		s := &shaped{File: f}
		b := make([]byte, 1<<20)
		for s.size < size && !enough() {
			if err := s.Write(b, s.size, false); err != nil {
				return nil, err
			}
			s.size += int64(len(b))
		}
		return s, nil
	}}
}

// TestTheFigureIsTheDevicesOwn measures emulated devices, of which the figures are
// known, with every scheduler, within the time that was given.
func TestTheFigureIsTheDevicesOwn(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		spec                           string
		read, write, readOps, writeOps int64
	}{
		{"read=60MiB,write=40MiB,iops=4000,latency=100us", 60 * mib, 40 * mib, 4000, 4000},
		{"read=200MiB,write=100MiB,iops=20000,latency=1ms", 200 * mib, 100 * mib, 16000, 16000},
	} {
		for name, scheduler := range map[string]func() sched.Scheduler{
			"classes":          func() sched.Scheduler { return sched.NewQoS(mclock.Options{}) },
			"order of arrival": func() sched.Scheduler { return sched.NewFIFO(0, 0) },
		} {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				r, err := Run(t.Context(), emulated(t, c.spec, scheduler()), 8*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				near := func(what string, got, want int64) {
					if got < want*8/10 || got > want*11/10 {
						t.Errorf("%s, %s: %s: found %d, it does %d", c.spec, name, what, got, want)
					}
				}
				near("bytes read", r.ReadBytes, c.read)
				near("bytes written", r.WriteBytes, c.write)
				near("reads", r.ReadOps, min(c.readOps, c.read/4096))
				near("writes", r.WriteOps, min(c.writeOps, c.write/4096))
				if took := time.Since(begun); took > 10*time.Second || r.Took > took {
					t.Errorf("%s: it took %v, by its own word %v", c.spec, took, r.Took)
				}
				if rate := r.Rate(); rate.Bytes != min(r.ReadBytes, r.WriteBytes) || rate.Ops != min(r.ReadOps, r.WriteOps) {
					t.Errorf("admission counts on %+v of %+v", rate, r)
				}
			})
		}
	}
}

// TestWhatOthersDoCountsAsDone measures a device that serves somebody meanwhile, who
// goes first: the figure is the device's all the same.
func TestWhatOthersDoCountsAsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduler := sched.NewQoS(mclock.Options{})
		d := emulated(t, "read=60MiB,write=40MiB,iops=4000,latency=100us", scheduler)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		f, err := d.New(1<<20, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		d.New = func(int64, func() bool) (File, error) { return f, nil } // the same file, and so the same device
		go func() {
			defer close(stopped)
			b := make([]byte, 64<<10)
			for ctx.Err() == nil {
				_ = scheduler.Do(ctx, sched.Tag{Class: layout.ClassTraining, Write: true, Bytes: len(b)}, func() { _ = f.Write(b, 0, false) })
			}
		}()
		r, err := Run(t.Context(), d, 4*time.Second)
		cancel()
		<-stopped
		if err != nil || r.WriteBytes < 32<<20 {
			t.Errorf("found %d bytes written a second of 40 MiB: %v", r.WriteBytes, err)
		}
	})
}

// TestAMeasurementEndsWithItsCaller cancels one, and fails another's device.
func TestAMeasurementEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d := emulated(t, "read=1MiB,write=1MiB,iops=400,latency=1ms", sched.NewQoS(mclock.Options{}))
		begun := time.Now()
		if _, err := Run(ctx, d, 8*time.Second); errs.KindOf(err) != errs.Deadline {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("it took %v after it was canceled", took)
		}
		broken := errors.New("broken")
		d.New = func(int64, func() bool) (File, error) { return nil, broken }
		if _, err := Run(t.Context(), d, time.Second); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}
