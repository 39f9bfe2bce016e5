package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text writes the result for people.
func (r *Result) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.headline())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "CASE\tCLIENTS\tBYTES\tMiB/s\tIOPS\tp50 us\tp99 us\tp99.9 us\tOF CEILING\tCPU s/GiB\tCPU us/op\tDEVICE B/B\tCOPIED B/B\tRSS MiB\tOTHERS BUSY\t")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.0f\t%.2f\t\n", c.Name, c.Clients, bytesText(c.Bytes),
			c.MiBPerS, c.IOPS, c.P50, c.P99, c.P999, c.RatioToCeiling, c.CPUPerGiB, c.CPUPerOp, c.Device, c.Copied, c.PeakMemory, c.OtherCoresBusy)
	}
	t.Flush()
	for _, n := range r.remarks() {
		fmt.Fprintf(w, "\n! %s", n)
	}
	if len(r.remarks()) > 0 {
		fmt.Fprintln(w)
	}
}

// headline says in one line what was measured, how and beside what.
func (r *Result) headline() string {
	devices := "devices as they are"
	if r.Cell.Emulated != "" {
		devices = "emulated devices " + r.Cell.Emulated
	}
	return fmt.Sprintf("%d+%d on %d chunk servers, %s, page cache %s, %s; %d cores, %.2f of them kept busy by others; working set %s, %s for writes, seed %d; %g s a run, %d runs",
		r.Cell.K, r.Cell.M, r.Cell.ChunkServers, r.Cell.Sync, r.Cell.PageCache, devices,
		r.Machine.Cores, r.Machine.OtherCoresBusy, bytesText(float64(r.Run.WorkingSet)), bytesText(float64(r.Run.WriteSet)), r.Run.Seed, r.Run.Seconds, r.Run.Repeat)
}

// busyRemark is from how many cores kept busy by others a figure is doubted.
const busyRemark = 0.2

// remarks are what a reader must know to believe the figures.
func (r *Result) remarks() []string {
	notes := r.Run.Notes
	var busy []string
	for _, c := range r.Cases {
		if c.OtherCoresBusy > busyRemark {
			busy = append(busy, c.Name)
		}
	}
	if len(busy) > 0 {
		notes = append(notes[:len(notes):len(notes)], "others kept cores busy: rates are too low and latencies too high in "+strings.Join(busy, ", "))
	}
	return notes
}

func bytesText(n float64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", n/gib)
	case n >= mib:
		return fmt.Sprintf("%.0f MiB", n/mib)
	}
	return fmt.Sprintf("%.0f KiB", n/kib)
}
