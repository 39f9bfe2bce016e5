package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Text writes the result for people: what came out, and what it cost.
func (r *Result) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.headline())
	var rates, costs [][]string
	for _, c := range r.Cases {
		rates = append(rates, []string{c.Name, strconv.Itoa(c.Clients), bytesText(c.Bytes), fmt.Sprintf("%.1f", c.MiBPerS), fmt.Sprintf("%.0f", c.IOPS),
			micros(c.P50), micros(c.P99), micros(c.P999), micros(c.Worst), fmt.Sprintf("%.2f", c.RatioToCeiling),
			fmt.Sprintf("%.2f", c.CPUPerGiB), fmt.Sprintf("%.0f", c.CPUPerOp), fmt.Sprintf("%.2f", c.OtherCoresBusy)})
		if !strings.HasPrefix(c.Name, ceilingPrefix) {
			costs = append(costs, []string{c.Name, fmt.Sprintf("%.0f", c.ClientCPU), fmt.Sprintf("%.0f", c.ChunkdCPU), fmt.Sprintf("%.0f", c.MetaCPU),
				fmt.Sprintf("%.1f", c.Allocations), fmt.Sprintf("%.1f", c.SystemCalls), fmt.Sprintf("%.2f", c.Copied), fmt.Sprintf("%.1f", c.ChunkdAllocs), fmt.Sprintf("%.1f", c.ChunkdCalls), fmt.Sprintf("%.2f", c.ChunkdCopied), fmt.Sprintf("%.2f", c.Device),
				fmt.Sprintf("%.0f", c.DegradedReads), fmt.Sprintf("%.0f", c.HedgedReads), fmt.Sprintf("%.3f", c.ExtraRequests), fmt.Sprintf("%.3f", c.ExtraBytes), fmt.Sprintf("%.0f", c.ClientMemory),
				fmt.Sprintf("%.0f", c.ChunkdMemory), fmt.Sprintf("%.0f", c.PeakMemory), fmt.Sprintf("%.2f", c.SlowestToMean)})
		}
	}
	if len(rates) > 0 {
		columns(w, "CASE,CLIENTS,BYTES,MiB/s,IOPS,p50 us,p99 us,p99.9 us,max us,OF CEILING,CPU s/GiB,CPU us/op,OTHERS BUSY", rates)
	}
	if len(costs) > 0 {
		fmt.Fprintln(w)
		columns(w, "CASE,CLIENT us/op,CHUNKD us/op,META us/op,ALLOCS/op,SYSCALLS/op,COPIED B/B,CHUNKD ALLOCS/op,CHUNKD SYSCALLS/op,CHUNKD COPIED B/B,DEVICE B/B,DEGRADED,HEDGED,EXTRA REQ/REQ,EXTRA B/B,CLIENT MiB,CHUNKD MiB,ALL MiB,SLOWEST/MEAN", costs)
	}
	r.gapsText(w)
	for _, c := range r.Cases {
		if c.RatioToDisk > 0 {
			fmt.Fprintf(w, "\n%s has %.2f of the rate at which its disk takes data and parity past the page cache (%s%s)\n", c.Name, c.RatioToDisk, ceilingPrefix, diskWrite)
		}
	}
	for _, c := range r.Cases {
		if c.RateToHealthy > 0 {
			fmt.Fprintf(w, "\n%s has %.2f of the rate, %.1f times the p50 and %.1f times the p99 that it has with all servers well\n", c.Name, c.RateToHealthy, c.P50ToHealthy, c.P99ToHealthy)
		}
		if c.RatioToOne > 0 {
			fmt.Fprintf(w, "\n%s: %d clients together have %.2f of the rate of one, the slowest %.2f of their mean\n", c.Name, c.Clients, c.RatioToOne, c.SlowestToMean)
		}
	}
	for _, n := range r.remarks() {
		fmt.Fprintf(w, "\n! %s\n", n)
	}
}

// gapsText writes what faults cost, each figure beside its bar.
func (r *Result) gapsText(w io.Writer) {
	if len(r.Gaps) == 0 {
		return
	}
	var rows [][]string
	for _, g := range r.Gaps {
		bar := barOf(g.Name)
		row := []string{g.Name, strconv.Itoa(g.Faults)}
		for _, f := range [][3]float64{{g.LongestWrite, g.MedianWrite, bar.write}, {g.LongestRead, g.MedianRead, bar.read}, {g.LongestBack, g.MedianBack, bar.back}} {
			for _, v := range f {
				row = append(row, millis(v))
			}
		}
		rows = append(rows, row)
	}
	if len(r.Cases) > 0 {
		fmt.Fprintln(w)
	}
	columns(w, "FAULT,TIMES,LONGEST ms WITHOUT A WRITE,MEDIAN,BAR,LONGEST READ ms,MEDIAN,BAR,ms UNTIL BACK,MEDIAN,BAR", rows)
}

func millis(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", v)
}

// columns writes a table: names on the left, figures right-aligned.
func columns(w io.Writer, header string, rows [][]string) {
	rows = append([][]string{strings.Split(header, ",")}, rows...)
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s", width[0], r[0])
		for i, cell := range r[1:] {
			fmt.Fprintf(w, "  %*s", width[i+1], cell)
		}
		fmt.Fprintln(w)
	}
}

func micros(v float64) string { return fmt.Sprintf("%.0f", v) }

// headline says in one line what was measured, how and beside what.
func (r *Result) headline() string {
	devices := "devices as they are"
	if r.Cell.Emulated != "" {
		devices = "emulated devices " + r.Cell.Emulated
	}
	busy := ""
	if len(r.Cases) > 0 { // else nobody looked
		busy = fmt.Sprintf(", %.2f of them kept busy by others", r.Machine.OtherCoresBusy)
	}
	return fmt.Sprintf("%d+%d on %d chunk servers, %s, page cache %s, %s; %d cores%s; working set %s, %s for writes, seed %d; %g s a run, %d runs",
		r.Cell.K, r.Cell.M, r.Cell.ChunkServers, r.Cell.Sync, r.Cell.PageCache, devices,
		r.Machine.Cores, busy, bytesText(float64(r.Run.WorkingSet)), bytesText(float64(r.Run.WriteSet)), r.Run.Seed, r.Run.Seconds, r.Run.Repeat)
}

// busyRemark is from how many cores kept busy by others a figure is doubted.
const (
	busyRemark = 0.2
	namedBusy  = 3 // cases that the remark names
)

// remarks are what a reader must know to believe the figures.
func (r *Result) remarks() []string {
	notes := r.Run.Notes
	var busy []string
	for _, c := range r.Cases {
		if c.OtherCoresBusy > busyRemark {
			busy = append(busy, c.Name)
		}
	}
	if n := len(busy); n > 0 {
		if n > namedBusy {
			busy = append(busy[:namedBusy], fmt.Sprintf("%d more", n-namedBusy))
		}
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
