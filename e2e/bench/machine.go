package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// thisMachine describes the hardware.
func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Processor: lineOf("/proc/cpuinfo", "model name"), Go: runtime.Version()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	total, _, _ := strings.Cut(lineOf("/proc/meminfo", "MemTotal"), " ")
	n, _ := strconv.Atoi(total)
	m.MemoryMiB = n / kib
	return m
}

// lineOf gives the value of the first line `key: value` of a file.
func lineOf(path, key string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// runInfo tells how this run was made.
func (b *bench) runInfo() RunInfo {
	r := RunInfo{Command: b.Command, Version: b.Version, At: time.Now().UTC().Truncate(time.Second), Seconds: b.Seconds, Repeat: b.Repeat,
		Seed: b.Seed, WorkingSet: b.Size, WriteSet: b.writeSet(b.Clients), Notes: b.notes}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Commit = s.Value + r.Commit
			}
			if s.Key == "vcs.modified" && s.Value == "true" {
				r.Commit += " with changes"
			}
		}
	}
	if b.target != nil && b.target.own == nil && b.target.counted < len(b.target.servers)+1 {
		r.Notes = append(r.Notes, "servers on other machines: their processor time and memory are not counted")
	}
	return r
}

// othersMean is what others kept busy while the cases ran.
func (b *bench) othersMean() float64 {
	sum, n := 0.0, 0
	for _, s := range append(b.series, b.ceilings...) {
		for _, one := range s.samples {
			sum += one.OtherCoresBusy
			n++
		}
	}
	return rounded(ratio(sum, float64(n)))
}
