package vfs_test

import (
	"errors"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/vfs"
)

func TestParseShapeReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]vfs.ShapeSpec{
		"": {},
		"read=60MiB,write=60MiB,iops=4000,latency=100us": {Read: 60 * mib, Write: 60 * mib, IOPS: 4000, Latency: 100 * time.Microsecond},
		" write=1.5GB , cache=4KiB ":                     {Write: 1_500_000_000, Cache: 4096},
		"read=77":                                        {Read: 77},
		"latency=0":                                      {},
	} {
		got, err := vfs.ParseShape(text)
		if err != nil || got != want {
			t.Fatalf("%q gave %+v, %v", text, got, err)
		}
		if again, err := vfs.ParseShape(got.String()); err != nil || again != want {
			t.Fatalf("%q gave %+v, %v", got.String(), again, err)
		}
	}
}

func TestParseShapeRefusesBadInput(t *testing.T) {
	for _, text := range []string{
		"read", "read=", "read=x", "read=-1", "read=0", "read=NaN", "read=1e300TiB", "read=60Mi", "iops=0", "iops=1.5",
		"latency=5", "latency=-1us", "speed=1", "read=1,read=2", "read=1,", ",",
	} {
		if s, err := vfs.ParseShape(text); !errors.Is(err, errs.InvalidArgument) || errs.HintOf(err) == "" {
			t.Errorf("%q gave %+v, %v", text, s, err)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	f.Add("read=60MiB,write=60MiB,iops=4000,latency=100us,cache=16MiB")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := vfs.ParseShape(text)
		if err != nil {
			return
		}
		if again, err := vfs.ParseShape(s.String()); err != nil || again != s {
			t.Fatalf("%q gave %+v, then %+v, %v", text, s, again, err)
		}
	})
}
