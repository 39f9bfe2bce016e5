package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"strake/internal/errs"
)

// ticksPerSecond is the unit of /proc/stat, the same on every Linux platform
// that Go runs on.
const ticksPerSecond = 100

// processTime is the processor time that all threads of a process have used,
// user and system, from the kernel's clock of that process.
func processTime(pid int) (time.Duration, error) {
	const perProcess, scheduled = 0, 2 // CPUCLOCK_SCHED, of a whole process
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess|scheduled), &ts); err != nil {
		return 0, errs.As(err, errs.NotFound, "read the processor time of process %d", pid)
	}
	return time.Duration(ts.Nano()), nil
}

// peakMemory is the most memory, in bytes, that a process had since resetPeak.
func peakMemory(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, errs.As(err, errs.NotFound, "read the memory of process %d", pid)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n * kib, errs.As(err, errs.Corrupt, "read VmHWM")
		}
	}
	return 0, errs.New(errs.NotFound, "", "process %d has no VmHWM: it has ended", pid)
}

// resetPeak has peakMemory begin again. Where the kernel refuses, the peak is
// that of the process's life.
func resetPeak(pid int) { _ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) }

// machineBusy is how long all cores together were busy since the machine's start,
// time that a hypervisor took away included.
func machineBusy() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, errs.As(err, errs.Unavailable, "read /proc/stat")
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return busyOf(string(line))
}

// busyOf reads the first line of /proc/stat: cpu user nice system idle iowait irq
// softirq steal guest guest_nice; guests are part of user and nice.
func busyOf(line string) (time.Duration, error) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errs.New(errs.Corrupt, "read /proc/stat", "first line %q", line)
	}
	ticks := int64(0)
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, errs.As(err, errs.Corrupt, "read /proc/stat")
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// listeners finds the processes of this machine that listen on TCP addresses, by
// address. Addresses of other machines are not in the result.
func listeners(addresses []string) map[string]int {
	inodes := map[string]string{} // "socket:[N]" to address
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if port, inode, ok := listening(s.Text()); ok {
				for _, a := range addresses {
					if strings.HasSuffix(a, ":"+strconv.Itoa(port)) {
						inodes["socket:["+inode+"]"] = a
					}
				}
			}
		}
		f.Close()
	}
	found := map[string]int{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, l := range links {
		to, _ := os.Readlink(l)
		if a, ok := inodes[to]; ok {
			found[a], _ = strconv.Atoi(strings.Split(l, "/")[2])
		}
	}
	return found
}

// listening reads a line of /proc/net/tcp: the local port and the socket's inode
// when its state is listen (0A).
func listening(line string) (port int, inode string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != "0A" {
		return 0, "", false
	}
	_, hex, _ := strings.Cut(fields[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	return int(n), fields[9], err == nil
}
