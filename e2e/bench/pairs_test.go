package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strake/internal/errs"
)

// TestAMatrixHoldsWhatWasAskedForAndEachVictimAlone, the idle aggressor first.
func TestAMatrixHoldsWhatWasAskedForAndEachVictimAlone(t *testing.T) {
	m, err := newMatrix("inference-*:scrub, training-1m-qd8:random-writes")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{alone, "random-writes", scrubbing}; !slices.Equal(m.aggressors, want) {
		t.Errorf("aggressors %v, want %v", m.aggressors, want)
	}
	if n := len(m.victims[alone]); n != 3 {
		t.Errorf("%d victims run alone, want 3", n)
	}
	if v := namesOf(m.victims[scrubbing]); !slices.Equal(v, []string{"inference-4k-qd1", "inference-64k-qd4"}) {
		t.Errorf("beside scrub run %v", v)
	}
	all, err := newMatrix("")
	if err != nil || len(all.aggressors) != len(aggressors()) {
		t.Errorf("all: %v, %v", all.aggressors, err)
	}
	if _, err := newMatrix("inference-*:scrub,nobody:*"); errs.KindOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v, want the pattern refused that matches nothing", err)
	}
}

// TestALateOperationCountsFromWhenItWasDue: the first operation takes longer than
// the whole window, so that the others are missed and their waits are in the
// latencies all the same.
func TestALateOperationCountsFromWhenItWasDue(t *testing.T) {
	r := newRecorder(0.05)
	r.start()
	calls := 0
	err := newStarts(r.begin, 0.05, 200).each(t.Context(), r, func(_ context.Context, due time.Time) error {
		calls++
		for time.Since(r.begin) < 60*time.Millisecond {
		}
		r.add(due, 4096)
		return nil
	})
	got, err2 := r.tally()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	h, err := got.histogram()
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 || got.Ops != 1 || got.Unserved != 9 || h.TotalCount() != 10 {
		t.Errorf("%d calls, %d operations, %d unserved, %d latencies; want 1, 1, 9, 10", calls, got.Ops, got.Unserved, h.TotalCount())
	}
	if p50 := time.Duration(h.ValueAtPercentile(50)); p50 < 30*time.Millisecond {
		t.Errorf("p50 %v: operations that were due 40 ms ago count for less", p50)
	}
}

// TestAClosedLoopMakesOneOperationHoweverLate: the time was over before it began.
func TestAClosedLoopMakesOneOperationHoweverLate(t *testing.T) {
	r := newRecorder(0.05)
	r.start()
	calls := 0
	operate := func(context.Context, time.Time) error { calls++; return nil }
	if err := newStarts(r.begin, 0, 0).each(t.Context(), r, operate); err != nil || calls != 1 {
		t.Errorf("%d calls, %v, want one", calls, err)
	}
}

// TestRatiosComeFromTheSameRun: two runs of different speed on a noisy machine.
func TestRatiosComeFromTheSameRun(t *testing.T) {
	r := &Interference{}
	for run, slow := range []float64{1, 10} {
		for _, off := range []bool{false, true} {
			rate, p99 := 40.0, 150.0
			if off {
				rate, p99 = 50, 900
			}
			r.add(&Pair{Victim: "v", Aggressor: alone, PairFigures: PairFigures{P99: 100 * slow}}, off, false, run)
			r.add(&Pair{Victim: "v", Aggressor: "a", PairFigures: PairFigures{P99: p99 * slow, AggressorRate: rate / slow}}, off, false, run)
		}
	}
	r.finish()
	on, off := findPair(r.Pairs, "v", "a"), findPair(r.Off, "v", "a")
	if on.P99Ratio != 1.5 || off.P99Ratio != 9 || on.Throughput != 0.8 || off.Throughput != 1 {
		t.Errorf("p99 ratios %g and %g, throughput %g and %g; want 1.5, 9, 0.8, 1", on.P99Ratio, off.P99Ratio, on.Throughput, off.Throughput)
	}
	if on.Min == nil || on.Min.P99 != 150 || on.Max.P99 != 1500 {
		t.Errorf("least %+v, greatest %+v", on.Min, on.Max)
	}
	if idle := findPair(r.Pairs, "v", alone); idle.P99Ratio != 1 || idle.Throughput != 1 {
		t.Errorf("alone: %+v", idle.PairFigures)
	}
}

// TestAMatrixKeepsTheContractAndDraws: every name that is frozen stands in the
// JSON, and the report needs nothing else.
func TestAMatrixKeepsTheContractAndDraws(t *testing.T) {
	r := &Interference{}
	for _, v := range append(victims(), control()) {
		for _, a := range aggressors() {
			r.add(&Pair{Victim: v.Name, Aggressor: a, PairFigures: PairFigures{P50: 1, P99: 2, P999: 3, IOPS: 4, AggressorRate: 5},
				Quantiles: [][2]float64{{50, 1}, {99, 2}}}, false, v.Name == control().Name, 0)
		}
	}
	r.add(&Pair{Victim: "training-1m-qd8", Aggressor: alone, Quantiles: [][2]float64{{50, 1}}}, true, false, 0)
	r.finish()
	dir := t.TempDir()
	path, err := WriteInterferenceReport(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := os.ReadFile(path)
	if n := strings.Count(string(page), "<svg"); n != 5 {
		t.Errorf("%d drawings, want one for each victim and one without quality of service", n)
	}
	raw, _ := os.ReadFile(filepath.Join(dir, "bench.json"))
	var got map[string][]map[string]any
	_ = json.Unmarshal(raw, &got) // the other objects are of other kinds
	for _, list := range []string{"pairs", "pairs_qos_off", "control"} {
		if len(got[list]) == 0 {
			t.Fatalf("no %s", list)
		}
		for _, key := range []string{"victim", "aggressor", "victim_p50_us", "victim_p99_us", "victim_p999_us", "victim_iops", "victim_p99_ratio",
			"aggressor_mib_per_s", "aggressor_throughput_ratio"} {
			if _, ok := got[list][0][key]; !ok {
				t.Errorf("%s has no %s", list, key)
			}
		}
	}
}

// TestACellInUseIsNotMeasured: the matrix drains servers.
func TestACellInUseIsNotMeasured(t *testing.T) {
	o := Options{Binary: "/nonexistent", Seconds: 1, Repeat: 1, Clients: 1, Size: 16 * mib, Cell: "127.0.0.1:1", Volume: "v", Progress: func(Event) {}}
	if _, err := Interfere(t.Context(), o, ""); errs.KindOf(err) != errs.InvalidArgument {
		t.Errorf("%v, want it refused", err)
	}
}
