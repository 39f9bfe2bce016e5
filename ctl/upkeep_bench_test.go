package ctl

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRebuild loses one server of eight at 4+2 and takes the time from its
// being given up until every shard is made again. The bound is what the survivors'
// devices can do: each byte made again costs k bytes read and one written. Run it
// with -benchtime 1x.
func BenchmarkRebuild(b *testing.B) {
	const deviceRate = 20 << 20
	b.Run("emulated", func(b *testing.B) {
		shape := fmt.Sprintf("read=%d,write=%d,iops=4000,latency=100us", deviceRate, deviceRate)
		for range b.N {
			rate, _ := rebuildOnce(b, shape, 768<<20)
			b.ReportMetric(rate/(7*deviceRate/(4+1)), "of-bound")
		}
	})
	b.Run("bare", func(b *testing.B) {
		for range b.N {
			_, cpu := rebuildOnce(b, "", 768<<20)
			b.ReportMetric(cpu, "cpu-s/GiB")
		}
	})
}

// rebuildOnce gives bytes made again a second, and the processor seconds of the
// whole cell for each GiB.
func rebuildOnce(b *testing.B, shape string, bytes int) (rate, cpu float64) {
	c := startUpkeepCell(b, 8, shape, nil)
	content := c.filled("v", bytes)
	c.down(2)
	c.eventually("it is given up", func() string {
		if c.devices("dead") == 1 {
			return ""
		}
		return "not yet"
	})
	began, used := time.Now(), processorTime(b)
	c.whole("after one server", 1)
	took, used := time.Since(began), processorTime(b)-used
	r, _ := c.status()
	c.check("v", content)
	b.Logf("%d MiB in %d shards in %v, %v of the processors", r.RebuiltBytes>>20, r.RebuiltShards, took, used)
	if r.RebuiltBytes == 0 {
		b.Fatal("nothing was made again")
	}
	b.ReportMetric(float64(r.RebuiltBytes)/(1<<20)/took.Seconds(), "MiB/s")
	return float64(r.RebuiltBytes) / took.Seconds(), used.Seconds() / (float64(r.RebuiltBytes) / (1 << 30))
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
