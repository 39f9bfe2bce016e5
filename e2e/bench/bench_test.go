package bench_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strake/e2e/bench"
	"strake/e2e/cluster"
	"strake/internal/errs"
)

// contractKeys are the frozen names of the JSON, by object.
var contractKeys = map[string][]string{
	"cell":    {"k", "m", "chunk_servers", "sync", "page_cache", "emulated_device"},
	"machine": {"cores", "other_cores_busy"},
	"case": {"name", "block_bytes", "queue_depth", "clients", "bytes", "ops", "seconds", "mib_per_s", "iops", "p50_us", "p90_us", "p99_us",
		"p999_us", "max_us", "ceiling_case", "ratio_to_ceiling", "cpu_s_per_gib", "cpu_us_per_op", "copied_bytes_per_byte",
		"device_bytes_per_byte", "peak_rss_mib", "degraded_reads", "hedged_reads", "extra_requests_per_request", "extra_bytes_per_byte",
		"ratio_to_one_client"},
}

// TestEveryCaseRunsAndFillsTheContract runs everything once, briefly, and looks at
// what must hold whatever the machine's speed.
func TestEveryCaseRunsAndFillsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cell of processes")
	}
	binary, err := cluster.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := bench.Options{Binary: binary, Cases: "all,limping-randread-4k-qd1,gap-*", Seconds: 0.05, Repeat: 1, Clients: 1, Size: 16 << 20, Seed: 1, Chunkds: 6, Metas: 3, Dir: dir,
		Progress: func(e bench.Event) {
			if e.Figures != nil {
				t.Logf("%s: %.0f operations", e.Case, e.Figures.Ops)
			}
		}}
	r, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
	want := slices.DeleteFunc(bench.Names(), func(name string) bool { return asked(name) && name != "limping-randread-4k-qd1" })
	if names := namesOf(r); !slices.Equal(sorted(names), sorted(want)) {
		t.Errorf("cases %v,\nwant %v", names, want)
	}
	if got := gapsOf(r); !slices.Equal(got, []string{"gap-kill", "gap-stop", "gap-leader", "gap-writer"}) {
		t.Errorf("the faults %v were made", got)
	}
	for _, c := range r.Cases {
		checkCase(t, c)
	}
	checkKeys(t, r)
}

// gapsOf checks what holds of each fault's figures, and names them.
func gapsOf(r *bench.Result) (names []string) {
	for _, g := range r.Gaps {
		loads, back := g.Name != "gap-writer", g.Name == "gap-leader" || g.Name == "gap-writer"
		if g.Faults == 1 && loads == (g.LongestWrite > 0 && g.LongestRead > 0) && back == (g.LongestBack > 0) {
			names = append(names, g.Name)
		}
	}
	return names
}

// asked tells whether a case runs only when it is asked for, not with all.
func asked(name string) bool {
	return strings.HasPrefix(name, "limping-") || strings.HasPrefix(name, "gap-")
}

func namesOf(r *bench.Result) (names []string) {
	for _, c := range r.Cases {
		names = append(names, c.Name)
	}
	return names
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// checkCase checks what holds on any machine, however slow.
func checkCase(t *testing.T, c bench.Outcome) {
	t.Helper()
	wrong := func(what string, got float64) { t.Errorf("%s: %s is %g", c.Name, what, got) }
	if c.Ops < 1 || c.Bytes < c.Ops*4096 || c.Bytes > c.Ops*4*float64(4<<20) {
		wrong("bytes", c.Bytes)
	}
	if c.P50 <= 0 || c.P50 > c.P90 || c.P90 > c.P99 || c.P99 > c.P999 || c.P999 > c.Worst*1.001 {
		wrong("p50 among its percentiles", c.P50)
	}
	if len(c.Quantiles) == 0 || c.CPUPerOp <= 0 || c.PeakMemory < 1 {
		wrong("processor time per operation", c.CPUPerOp)
	}
	if perGiB := c.CPUPerOp * c.Ops / 1e6 / (c.Bytes / (1 << 30)); perGiB < c.CPUPerGiB*0.99 || perGiB > c.CPUPerGiB*1.01 {
		t.Errorf("%s: %g us per operation are %g s/GiB, it says %g", c.Name, c.CPUPerOp, perGiB, c.CPUPerGiB)
	}
	ceiling := strings.HasPrefix(c.Name, "ceiling-")
	healthyRead := !ceiling && strings.Contains(c.Name, "read") && !strings.HasPrefix(c.Name, "degraded-")
	switch {
	case ceiling && (c.CeilingCase != c.Name || c.RatioToCeiling != 1):
		wrong("a ceiling's own ratio", c.RatioToCeiling)
	case !ceiling && c.RatioToCeiling <= 0:
		wrong("ratio", c.RatioToCeiling)
	case strings.Contains(c.Name, "write") && !ceiling && (c.Verified < 1 || c.Device <= 1):
		wrong("device bytes per byte written", c.Device)
	case healthyRead && c.Device < 0.9:
		wrong("device bytes per byte read", c.Device)
	}
	if !ceiling {
		checkCounters(t, c)
	}
}

// checkCounters holds what an operation may cost against its bounds, on any machine.
func checkCounters(t *testing.T, c bench.Outcome) {
	t.Helper()
	wrong := func(what string, got float64) { t.Errorf("%s: %s is %g", c.Name, what, got) }
	well := !strings.HasPrefix(c.Name, "degraded-") && !strings.HasPrefix(c.Name, "limping-")
	name := strings.TrimPrefix(strings.TrimPrefix(c.Name, "degraded-"), "limping-")
	perOp := c.BlockBytes/4096 + 8 // system calls: a unit takes a few, and each flush one for each server
	switch {
	case c.SystemCalls <= 0 || c.SystemCalls > float64(6*perOp):
		wrong("system calls per operation", c.SystemCalls)
	case c.ChunkdCalls <= 0:
		wrong("chunk servers' system calls per operation", c.ChunkdCalls)
	case name == "seqwrite-4m" && c.ChunkdCopied > 1.5: // each byte of data and parity at most once
		wrong("bytes that chunk servers copied per byte written", c.ChunkdCopied)
	case strings.Contains(name, "write") && (c.Copied < 0.99 || c.Copied > 1.01): // into the volume's own memory, once
		wrong("bytes copied per byte written", c.Copied)
	case well && (name == "seqread-4m" || name == "randread-128k" || name == "shuffle") && c.Copied > 0.25: // what came with a header
		wrong("bytes copied per byte read", c.Copied)
	case well && !strings.Contains(name, "write") && c.Copied > 1.01: // small replies, and what was read ahead
		wrong("bytes copied per byte read", c.Copied)
	}
}

// checkKeys compares the JSON with the contract.
func checkKeys(t *testing.T, r *bench.Result) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cell    map[string]any   `json:"cell"`
		Machine map[string]any   `json:"machine"`
		Cases   []map[string]any `json:"cases"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	objects := map[string][]map[string]any{"cell": {got.Cell}, "machine": {got.Machine}, "case": got.Cases}
	for name, keys := range contractKeys {
		for _, o := range objects[name] {
			for _, k := range keys {
				if _, ok := o[k]; !ok {
					t.Errorf("%s %v has no %q", name, o["name"], k)
				}
			}
		}
	}
	if got.Cell["k"] != 4.0 || got.Cell["m"] != 2.0 || got.Cell["chunk_servers"] != 6.0 {
		t.Errorf("cell %v, want 4+2 on 6", got.Cell)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	good := bench.Options{Binary: "/nonexistent", Cases: "all", Seconds: 1, Repeat: 1, Clients: 1, Size: 16 << 20, Progress: func(bench.Event) {}}
	for name, spoil := range map[string]func(*bench.Options){
		"no time":              func(o *bench.Options) { o.Seconds = 0 },
		"no run":               func(o *bench.Options) { o.Repeat = 0 },
		"no client":            func(o *bench.Options) { o.Clients = 0 },
		"an odd size":          func(o *bench.Options) { o.Size++ },
		"an unknown case":      func(o *bench.Options) { o.Cases = "seqread-4m,fastread" },
		"a cell and no volume": func(o *bench.Options) { o.Cell = "127.0.0.1:1" },
	} {
		o := good
		spoil(&o)
		if _, err := bench.Run(context.Background(), o); errs.KindOf(err) != errs.InvalidArgument {
			t.Errorf("%s: %v, want it refused as invalid-argument", name, err)
		}
	}
}

// TestAnUnreachableCellIsTold: nothing is left to clean up.
func TestAnUnreachableCellIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the cell is given up")
	}
	o := bench.Options{Binary: "/nonexistent", Cases: "seqread-4m", Seconds: 1, Repeat: 1, Clients: 1, Size: 16 << 20,
		Cell: "127.0.0.1:1", Volume: "v", Progress: func(bench.Event) {}}
	if _, err := bench.Run(t.Context(), o); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v, want it told as unavailable", err)
	}
}

// TestReportNeedsNothingElse writes a report and looks for references to what is
// not in it.
func TestReportNeedsNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	path, err := bench.WriteReport(dir, fixedResult(t))
	if err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"src=", "href=", "@import", "url(", "<script"} {
		if strings.Contains(string(html), bad) {
			t.Errorf("the report has %q", bad)
		}
	}
	var again bench.Result
	raw, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil || json.Unmarshal(raw, &again) != nil || len(again.Cases) != len(fixedResult(t).Cases) {
		t.Errorf("the JSON beside it does not read back: %v", err)
	}
}

// fixedResult is a result that was measured once, for what is drawn from it.
func fixedResult(t *testing.T) *bench.Result {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &bench.Result{}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Fatal(err)
	}
	return r
}
