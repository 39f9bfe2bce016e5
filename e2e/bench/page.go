package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"strake/internal/errs"
)

//go:embed page.html
var pageText string

// page is what the template of the report gets.
type page struct {
	Headline string
	Remarks  []string
	Facts    [][2]string
	Sections []section
	Table    string
	Again    []string // command lines
}

// section is a heading with plots under it.
type section struct {
	Title, Words string
	Plots        []template.HTML
}

// reportPage makes the whole report: one file, no assets.
func reportPage(r *Result) ([]byte, error) {
	var table strings.Builder
	r.Text(&table)
	_, rows, _ := strings.Cut(table.String(), "\n\n")
	return render(page{Headline: r.headline(), Remarks: r.remarks(), Facts: r.facts(), Sections: r.sections(), Table: rows,
		Again: []string{r.Run.Command, "strake bench report DIR --from bench.json"}})
}

// render fills the template in.
func render(p page) ([]byte, error) {
	t, err := template.New("report").Parse(pageText)
	if err != nil {
		return nil, errs.As(err, errs.Internal, "read the report's template")
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, errs.As(err, errs.Internal, "write the report")
	}
	return out.Bytes(), nil
}

// facts are what a reader needs to repeat the run.
func (r *Result) facts() [][2]string {
	return [][2]string{
		{"geometry", fmt.Sprintf("%d+%d on %d chunk servers", r.Cell.K, r.Cell.M, r.Cell.ChunkServers)},
		{"durability", r.Cell.Sync + "; page cache " + r.Cell.PageCache},
		{"devices", devicesText(r.Cell.Emulated)},
		{"working set", fmt.Sprintf("%s, %s for writes, seed %d", bytesText(float64(r.Run.WorkingSet)), bytesText(float64(r.Run.WriteSet)), r.Run.Seed)},
		{"runs", fmt.Sprintf("%g s each, %d per case", r.Run.Seconds, r.Run.Repeat)},
		{"machine", fmt.Sprintf("%d cores %s, %d MiB, Linux %s, %s", r.Machine.Cores, r.Machine.Processor, r.Machine.MemoryMiB, r.Machine.Kernel, r.Machine.Go)},
		{"other load", fmt.Sprintf("%.2f cores kept busy by others while the cases ran", r.Machine.OtherCoresBusy)},
		{"version", strings.TrimSpace(r.Run.Version + " " + r.Run.Commit)},
		{"at", r.Run.At.Format("2006-01-02 15:04:05 MST")},
	}
}

// smallBlock divides cases that are judged by rate from those judged by operations.
const smallBlock = 64 * kib

func (r *Result) sections() []section {
	large := func(c Outcome) bool { return c.BlockBytes > smallBlock }
	small := func(c Outcome) bool { return c.BlockBytes <= smallBlock }
	rate := func(f *Figures) float64 { return f.MiBPerS }
	ops := func(f *Figures) float64 { return f.IOPS }
	list := []section{
		{"Throughput", "Blue: the case; grey: its ceiling, bare TCP in the same run; black: least to greatest of the runs.", plots(
			barsIf("Large blocks", "MiB/s", r.rowsOf(large, rate, true)), barsIf("4 KiB blocks", "IOPS", r.rowsOf(small, ops, true)))},
		{"Processor time", "Of all processes together: clients, chunk servers, metadata server.", plots(
			barsIf("Large blocks: processor time", "s per GiB", r.rowsOf(large, func(f *Figures) float64 { return f.CPUPerGiB }, true)),
			barsIf("4 KiB blocks: processor time", "us per operation", r.rowsOf(small, func(f *Figures) float64 { return f.CPUPerOp }, true)))},
		{"Latency", "", plots(
			curvesIf("4 KiB reads", r.curvesOf("randread-4k-qd1", "degraded-randread-4k-qd1", "randread-4k-qd32", "degraded-randread-4k-qd32")),
			curvesIf("Larger reads", r.curvesOf("randread-128k", "degraded-randread-128k", "shuffle", "seqread-4m", "degraded-seqread-4m")),
			curvesIf("4 KiB writes", r.curvesOf("randwrite-4k-qd1", "randwrite-4k-qd1-noflush", "randwrite-4k-qd32", "randwrite-4k-qd32-noflush")))},
	}
	fault := section{Title: "Across a fault"}
	for _, f := range r.Faults {
		fault.Plots = append(fault.Plots, template.HTML(overTime(f)))
	}
	var shown []section
	for _, s := range append(list, fault) {
		if len(s.Plots) > 0 {
			shown = append(shown, s)
		}
	}
	return shown
}

// plots drops the empty ones. What the drawings hold is escaped by them.
func plots(list ...string) (shown []template.HTML) {
	for _, p := range list {
		if p != "" {
			shown = append(shown, template.HTML(p))
		}
	}
	return shown
}

func barsIf(title, unit string, rows []bar) string {
	if len(rows) == 0 {
		return ""
	}
	return bars(title, unit, rows)
}

func curvesIf(title string, curves []curve) string {
	if len(curves) == 0 {
		return ""
	}
	return latencies(title, "the ceiling's round trip", curves)
}
