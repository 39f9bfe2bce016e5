package bench_test

import (
	"os"
	"slices"
	"testing"

	"strake/e2e/bench"
	"strake/e2e/cluster"
)

// TestTheMatrixRunsWithEveryKindOfAggressor, in a small cell, briefly: a client that
// writes, one that cleans, the victim's own process, and the cell's own work. Each did
// something, with quality of service and without, and nothing is left behind.
func TestTheMatrixRunsWithEveryKindOfAggressor(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two cells of processes")
	}
	binary, err := cluster.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := bench.Options{Binary: binary, Seconds: 0.3, Repeat: 1, Clients: 1, Size: 32 << 20, Seed: 1, Chunkds: 6, Dir: dir, Progress: func(e bench.Event) {
		if e.Figures != nil {
			t.Logf("%s: %.0f operations a second, aggressor %.1f MiB/s", e.Case, e.Figures.IOPS, e.Figures.MiBPerS)
		}
	}}
	aggressors := []string{"none", "checkpoint-writes", "cleaning", "scrub", "rebuild", "own-checkpoint-writes"}
	pairs := ""
	for _, a := range aggressors[1:] {
		pairs += ",inference-4k-qd1:" + a
	}
	r, err := bench.Interfere(t.Context(), o, pairs[1:])
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
	for _, list := range [][]*bench.Pair{r.Pairs, r.Off} {
		var names []string
		for _, p := range list {
			names = append(names, p.Aggressor)
			if p.Victim != "inference-4k-qd1" || p.IOPS == 0 || p.P50 == 0 || p.P99 < p.P50 || len(p.Quantiles) == 0 {
				t.Errorf("%s beside %s: %+v", p.Victim, p.Aggressor, p.PairFigures)
			}
			if work := p.AggressorRate > 0; work != (p.Aggressor != "none") && p.Aggressor != "scrub" {
				t.Errorf("%s moved %g MiB/s", p.Aggressor, p.AggressorRate)
			}
		}
		slices.Sort(names)
		if want := slices.Sorted(slices.Values(aggressors)); !slices.Equal(names, want) {
			t.Errorf("beside %v, want %v", names, want)
		}
	}
	if len(r.Control) != len(aggressors)-1 {
		t.Errorf("%d pairs of the control, want one for each aggressor that is a process of its own, and alone", len(r.Control))
	}
}
