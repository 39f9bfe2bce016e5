package bench

import (
	"fmt"
	"io"
	"slices"
)

// Interference is what the matrix prints. Names and meanings in JSON are frozen;
// new ones may come.
type Interference struct {
	Cell    CellInfo `json:"cell"`
	Machine Machine  `json:"machine"`
	Run     RunInfo  `json:"run"`
	Pairs   []*Pair  `json:"pairs"`
	Off     []*Pair  `json:"pairs_qos_off"`
	Control []*Pair  `json:"control"` // with quality of service
}

// Pair is one victim beside one aggressor; figures are medians of the runs.
type Pair struct {
	Victim    string `json:"victim"`
	Aggressor string `json:"aggressor"`
	PairFigures
	Min *PairFigures `json:"min,omitempty"`
	Max *PairFigures `json:"max,omitempty"`
	// Quantiles are [percent, microseconds], of the run with the median p99.
	Quantiles [][2]float64 `json:"quantiles_us"`

	runs      []PairFigures
	quantiles [][][2]float64
}

// PairFigures are what one run of a pair showed.
type PairFigures struct {
	P50           float64 `json:"victim_p50_us"`
	P99           float64 `json:"victim_p99_us"`
	P999          float64 `json:"victim_p999_us"`
	IOPS          float64 `json:"victim_iops"`
	P99Ratio      float64 `json:"victim_p99_ratio"` // to the same victim alone, in the same run
	AggressorRate float64 `json:"aggressor_mib_per_s"`
	Throughput    float64 `json:"aggressor_throughput_ratio"` // to the same pair without quality of service; 1 when there is no aggressor
	P50Ratio      float64 `json:"victim_p50_ratio"`
	Unserved      float64 `json:"victim_unserved"` // operations that were due and did not begin in the window
	Cores         float64 `json:"cores"`           // kept busy by the cell and its clients
}

func (f *PairFigures) fields() []*float64 {
	return []*float64{&f.P50, &f.P99, &f.P999, &f.IOPS, &f.P99Ratio, &f.AggressorRate, &f.Throughput, &f.P50Ratio, &f.Unserved, &f.Cores}
}

// list gives where pairs of a kind stand.
func (r *Interference) list(off, echo bool) *[]*Pair {
	switch {
	case echo:
		return &r.Control
	case off:
		return &r.Off
	}
	return &r.Pairs
}

// add takes in one run of a pair. Its victim ran alone before.
func (r *Interference) add(p *Pair, off, echo bool, run int) {
	into := r.list(off, echo)
	base := &p.PairFigures
	if found := findPair(*into, p.Victim, alone); found != nil && run < len(found.runs) {
		base = &found.runs[run]
	}
	p.P99Ratio, p.P50Ratio = ratio(p.P99, base.P99), ratio(p.P50, base.P50)
	have := findPair(*into, p.Victim, p.Aggressor)
	if have == nil {
		have = &Pair{Victim: p.Victim, Aggressor: p.Aggressor}
		*into = append(*into, have)
	}
	have.runs, have.quantiles = append(have.runs, p.PairFigures), append(have.quantiles, p.Quantiles)
}

func findPair(list []*Pair, victim, aggressor string) *Pair {
	for _, p := range list {
		if p.Victim == victim && p.Aggressor == aggressor {
			return p
		}
	}
	return nil
}

// finish compares the two cells and makes medians.
func (r *Interference) finish() {
	for _, p := range slices.Concat(r.Pairs, r.Off, r.Control) {
		off := findPair(r.Off, p.Victim, p.Aggressor)
		for n := range p.runs {
			p.runs[n].Throughput = 1
			if off != nil && n < len(off.runs) && off.runs[n].AggressorRate > 0 {
				p.runs[n].Throughput = ratio(p.runs[n].AggressorRate, off.runs[n].AggressorRate)
			}
		}
		p.summarize()
	}
}

// summarize makes medians of the runs.
func (p *Pair) summarize() {
	var least, greatest PairFigures
	for f := range p.fields() {
		var values []float64
		for n := range p.runs {
			values = append(values, *p.runs[n].fields()[f])
		}
		slices.Sort(values)
		n := len(values)
		*p.fields()[f] = rounded((values[(n-1)/2] + values[n/2]) / 2)
		*least.fields()[f], *greatest.fields()[f] = rounded(values[0]), rounded(values[n-1])
	}
	if len(p.runs) > 1 {
		p.Min, p.Max = &least, &greatest
	}
	best := 0
	for n := range p.runs {
		if distance(p.runs[n].P99, p.P99) < distance(p.runs[best].P99, p.P99) {
			best = n
		}
	}
	p.Quantiles = p.quantiles[best]
}

// Text writes the matrix for people.
func (r *Interference) Text(w io.Writer) {
	fmt.Fprintf(w, "%d+%d on %d chunk servers, devices %s; %d cores, %.2f of them kept busy by others; %g s a window, %d runs\n",
		r.Cell.K, r.Cell.M, r.Cell.ChunkServers, devicesText(r.Cell.Emulated), r.Machine.Cores, r.Machine.OtherCoresBusy, r.Run.Seconds, r.Run.Repeat)
	for _, t := range []struct {
		title string
		list  []*Pair
	}{{"with quality of service", r.Pairs}, {"without", r.Off}, {"control: bare TCP beside the same", r.Control}} {
		fmt.Fprintf(w, "\n%s\n", t.title)
		var rows [][]string
		for _, p := range t.list {
			rows = append(rows, []string{p.Victim, p.Aggressor, micros(p.P50), micros(p.P99), micros(p.P999), fmt.Sprintf("%.0f", p.IOPS),
				fmt.Sprintf("%.2f", p.P99Ratio), fmt.Sprintf("%.0f", p.Unserved), fmt.Sprintf("%.1f", p.AggressorRate), fmt.Sprintf("%.2f", p.Throughput), fmt.Sprintf("%.2f", p.Cores)})
		}
		columns(w, "VICTIM,AGGRESSOR,p50 us,p99 us,p99.9 us,IOPS,p99 TO ALONE,UNSERVED,AGGRESSOR MiB/s,TO QOS OFF,CORES", rows)
	}
}

// devicesText says what devices were measured on.
func devicesText(shape string) string {
	if shape == "" {
		return "as they are"
	}
	return shape
}
