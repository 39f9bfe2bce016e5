package bench

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestPercentilesAreInMicroseconds records 1 to 1000 us and reads them back
// through the report of a worker.
func TestPercentilesAreInMicroseconds(t *testing.T) {
	r := newRecorder(1)
	r.start()
	for i := 1; i <= 1000; i++ {
		r.add(time.Now().Add(-time.Duration(i)*time.Microsecond), 4096)
	}
	one, err := r.tally()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSample([]*tally{&one, &one})
	if err != nil {
		t.Fatal(err)
	}
	if s.Ops != 2000 || s.Bytes != 2000*4096 {
		t.Errorf("two workers of 1000 operations give %g operations, %g bytes", s.Ops, s.Bytes)
	}
	// Recording itself takes a moment, which adds to each.
	for name, c := range map[string]struct{ got, want float64 }{"p50": {s.P50, 500}, "p90": {s.P90, 900}, "p99": {s.P99, 990}} {
		if c.got < c.want*0.99 || c.got > c.want*1.5+1000 {
			t.Errorf("%s is %g us, want about %g", name, c.got, c.want)
		}
	}
	if s.Worst < 1000 || s.P999 > s.Worst {
		t.Errorf("p99.9 %g, worst %g us", s.P999, s.Worst)
	}
}

func TestRatesOfClientsAddUp(t *testing.T) {
	tallies := []*tally{{Bytes: 100 * mib, Ops: 100, Seconds: 1}, {Bytes: 300 * mib, Ops: 300, Seconds: 1}}
	for _, x := range tallies {
		empty, err := newRecorder(1).tally()
		if err != nil {
			t.Fatal(err)
		}
		x.Hist = empty.Hist
	}
	s, err := newSample(tallies)
	if err != nil {
		t.Fatal(err)
	}
	if s.MiBPerS != 400 || s.IOPS != 400 || s.SlowestToMean != 0.5 {
		t.Errorf("%g MiB/s, %g IOPS, slowest to mean %g; want 400, 400, 0.5", s.MiBPerS, s.IOPS, s.SlowestToMean)
	}
}

func TestProcessorTimeIsPerGiBAndPerOperation(t *testing.T) {
	s := &sample{Figures: Figures{Bytes: 2 * gib, Ops: 1000}}
	s.processors(map[string]float64{roleClient: 1, roleChunkd: 2, roleMeta: 1})
	if s.CPUPerGiB != 2 || s.CPUPerOp != 4000 || s.ClientCPU != 1000 || s.ChunkdCPU != 2000 || s.MetaCPU != 1000 {
		t.Errorf("4 s for 2 GiB and 1000 operations: %+v", s.Figures)
	}
}

// TestProcessTimeIsTheProcesss has a child use the processor and compares the
// kernel's clock of it with what wait tells.
func TestProcessTimeIsTheProcesss(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	_, readErr := out.Read(make([]byte, 1))
	got, err := processTime(cmd.Process.Pid)
	peak, memoryErr := peakMemory(cmd.Process.Pid)
	in.Close()
	_ = cmd.Wait()
	if readErr != nil || err != nil || memoryErr != nil {
		t.Fatal(readErr, err, memoryErr)
	}
	waited := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if got < waited/2 || got > waited+10*time.Millisecond {
		t.Errorf("the clock says %v, wait says %v", got, waited)
	}
	if peak < 100*kib || peak > 100*mib {
		t.Errorf("a shell's peak is %d bytes", peak)
	}
	if _, err := processTime(cmd.Process.Pid); err == nil {
		t.Error("an ended process has a clock")
	}
}

func TestBusyTimeLeavesIdleOut(t *testing.T) {
	got, err := busyOf("cpu  100 10 50 9999 8888 3 7 30 20 10")
	if want := 2 * time.Second; err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if _, err := busyOf("intr 5"); err == nil {
		t.Error("a wrong line is taken")
	}
}

func TestListenersAreFoundByAddress(t *testing.T) {
	p, err := servePeer(ceiling{Message: 64, Windows: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if found := listeners([]string{p.address(), "127.0.0.1:1"}); len(found) != 1 || found[p.address()] != os.Getpid() {
		t.Errorf("found %v, want this process at %s", found, p.address())
	}
}

func TestSummaryHasMedianLeastAndGreatest(t *testing.T) {
	median, least, greatest := summarize([]Figures{{MiBPerS: 3, P50: 10}, {MiBPerS: 1, P50: 30}, {MiBPerS: 2, P50: 20}})
	if median.MiBPerS != 2 || median.P50 != 20 || least.MiBPerS != 1 || least.P50 != 10 || greatest.MiBPerS != 3 || greatest.P50 != 30 {
		t.Errorf("median %+v least %+v greatest %+v", median, least, greatest)
	}
	if median, _, _ := summarize([]Figures{{Ops: 1}, {Ops: 2}}); median.Ops != 1.5 {
		t.Errorf("median of 1 and 2 is %g", median.Ops)
	}
}
