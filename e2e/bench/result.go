package bench

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Result is what a bench prints. Names and meanings in JSON are frozen; new ones
// may come.
type Result struct {
	Cell    CellInfo  `json:"cell"`
	Machine Machine   `json:"machine"`
	Run     RunInfo   `json:"run"`
	Cases   []Outcome `json:"cases"`
	Faults  []Fault   `json:"faults,omitempty"`
	Gaps    []Gap     `json:"gaps,omitempty"`
}

// CellInfo is what was measured.
type CellInfo struct {
	K            int    `json:"k"`
	M            int    `json:"m"`
	ChunkServers int    `json:"chunk_servers"`
	Sync         string `json:"sync"`
	PageCache    string `json:"page_cache"`
	Emulated     string `json:"emulated_device"`   // empty: the file system as it is
	Address      string `json:"address,omitempty"` // of a cell that was there before
	Counted      int    `json:"servers_counted"`   // those whose processor time is in the figures
}

// Machine is what it was measured on.
type Machine struct {
	Cores          int     `json:"cores"`
	OtherCoresBusy float64 `json:"other_cores_busy"` // over the whole bench, idle stretches included
	Processor      string  `json:"processor"`
	Kernel         string  `json:"kernel"`
	MemoryMiB      int     `json:"memory_mib"`
	Go             string  `json:"go"`
}

// RunInfo is how it was measured.
type RunInfo struct {
	Command    string    `json:"command"`
	Version    string    `json:"version"`
	Commit     string    `json:"commit"`
	At         time.Time `json:"at"`
	Seconds    float64   `json:"seconds"`
	Repeat     int       `json:"repeat"`
	Seed       uint64    `json:"seed"`
	WorkingSet int64     `json:"working_set_bytes"`
	WriteSet   int64     `json:"write_set_bytes"`
	Notes      []string  `json:"notes,omitempty"`
}

// Outcome is one case's result: each figure is the median of its runs.
type Outcome struct {
	Name       string `json:"name"`
	BlockBytes int64  `json:"block_bytes"`
	QueueDepth int    `json:"queue_depth"` // per client
	Clients    int    `json:"clients"`
	Figures
	CeilingCase string `json:"ceiling_case"`
	// Of a case with a server stopped or slow, to the same case of the same bench with all
	// servers well: rate, p50 and p99; 0: that was not run.
	RateToHealthy float64  `json:"rate_to_healthy,omitempty"`
	P50ToHealthy  float64  `json:"p50_to_healthy,omitempty"`
	P99ToHealthy  float64  `json:"p99_to_healthy,omitempty"`
	Min           *Figures `json:"min,omitempty"`
	Max           *Figures `json:"max,omitempty"`
	// Quantiles are [percent, microseconds], of the run with the median p50.
	Quantiles [][2]float64 `json:"quantiles_us"`
}

// Figures are what one run of a case showed.
type Figures struct {
	Bytes          float64 `json:"bytes"`
	Ops            float64 `json:"ops"`
	Seconds        float64 `json:"seconds"`
	MiBPerS        float64 `json:"mib_per_s"`
	IOPS           float64 `json:"iops"`
	P50            float64 `json:"p50_us"`
	P90            float64 `json:"p90_us"`
	P99            float64 `json:"p99_us"`
	P999           float64 `json:"p999_us"`
	Worst          float64 `json:"max_us"`
	RatioToCeiling float64 `json:"ratio_to_ceiling"`
	RatioToDisk    float64 `json:"ratio_to_disk"` // of a sequential write: to what the cell's disk takes of data and parity, past the page cache; 0: not measured
	CPUPerGiB      float64 `json:"cpu_s_per_gib"`
	CPUPerOp       float64 `json:"cpu_us_per_op"`
	Copied         float64 `json:"copied_bytes_per_byte"` // by the client, between socket and caller
	Device         float64 `json:"device_bytes_per_byte"` // written per byte written, or read per byte read
	PeakMemory     float64 `json:"peak_rss_mib"`          // all processes
	DegradedReads  float64 `json:"degraded_reads"`
	HedgedReads    float64 `json:"hedged_reads"`
	ExtraRequests  float64 `json:"extra_requests_per_request"` // for what other shards should have given, over all others
	ExtraBytes     float64 `json:"extra_bytes_per_byte"`       // asked for by these
	RatioToOne     float64 `json:"ratio_to_one_client"`        // of the clients' rate together; 0: there is one

	ClientCPU      float64 `json:"client_cpu_us_per_op"`
	ChunkdCPU      float64 `json:"chunkd_cpu_us_per_op"` // all chunk servers
	MetaCPU        float64 `json:"meta_cpu_us_per_op"`
	ClientMemory   float64 `json:"client_rss_mib"` // the largest
	ChunkdMemory   float64 `json:"chunkd_rss_mib"` // the largest
	Allocations    float64 `json:"client_allocs_per_op"`
	SystemCalls    float64 `json:"client_syscalls_per_op"` // of its data connections
	ChunkdAllocs   float64 `json:"chunkd_allocs_per_op"`   // of all chunk servers, as are the next two
	ChunkdCalls    float64 `json:"chunkd_syscalls_per_op"` // on data connections
	ChunkdCopied   float64 `json:"chunkd_copied_bytes_per_byte"`
	SlowestToMean  float64 `json:"slowest_to_mean"` // of the clients' rates; 1 for one client
	OtherCoresBusy float64 `json:"other_cores_busy"`
	Verified       float64 `json:"verified_blocks"`
}

// fields lists pointers to all figures, in one order.
func (f *Figures) fields() []*float64 {
	return []*float64{&f.Bytes, &f.Ops, &f.Seconds, &f.MiBPerS, &f.IOPS, &f.P50, &f.P90, &f.P99, &f.P999, &f.Worst,
		&f.RatioToCeiling, &f.RatioToDisk, &f.CPUPerGiB, &f.CPUPerOp, &f.Copied, &f.Device, &f.PeakMemory, &f.DegradedReads, &f.HedgedReads, &f.ExtraRequests, &f.ExtraBytes, &f.RatioToOne,
		&f.ClientCPU, &f.ChunkdCPU, &f.MetaCPU, &f.ClientMemory, &f.ChunkdMemory, &f.Allocations, &f.SystemCalls, &f.ChunkdAllocs, &f.ChunkdCalls, &f.ChunkdCopied,
		&f.SlowestToMean, &f.OtherCoresBusy, &f.Verified}
}

// summarize gives the median of each figure, and the least and greatest.
func summarize(runs []Figures) (median, least, greatest Figures) {
	for i := range median.fields() {
		var values []float64
		for r := range runs {
			values = append(values, *runs[r].fields()[i])
		}
		slices.Sort(values)
		if n := len(values); n > 0 {
			*least.fields()[i], *greatest.fields()[i] = rounded(values[0]), rounded(values[n-1])
			*median.fields()[i] = rounded((values[(n-1)/2] + values[n/2]) / 2)
		}
	}
	return median, least, greatest
}

// compare sets what cases with a server stopped or slow are to those without.
func (r *Result) compare() {
	well := map[string]*Outcome{}
	for i := range r.Cases {
		well[r.Cases[i].Name] = &r.Cases[i]
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		for _, prefix := range []string{degradedPrefix, limpingPrefix} {
			name, ok := strings.CutPrefix(c.Name, prefix)
			if h := well[name]; ok && h != nil {
				c.RateToHealthy, c.P50ToHealthy, c.P99ToHealthy = rounded(ratio(c.MiBPerS, h.MiBPerS)), rounded(ratio(c.P50, h.P50)), rounded(ratio(c.P99, h.P99))
			}
		}
	}
}

// rounded keeps what is worth printing: four digits after the point below 100,
// one above, none above a million.
func rounded(v float64) float64 {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0
	case a < 100:
		return math.Round(v*1e4) / 1e4
	case a < 1e6:
		return math.Round(v*10) / 10
	}
	return math.Round(v)
}
