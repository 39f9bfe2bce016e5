package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bar is one row of a bar chart: a case, and its ceiling when it has one.
type bar struct {
	name           string
	value, ceiling float64 // ceiling 0: none
	low, high      float64 // least and greatest of the runs; equal: one run
}

const (
	barRow    = 30.0
	barLeft   = 210.0
	barRight  = plotWidth - 130
	barBottom = 34.0
)

// bars draws rows of bars, each beside its ceiling.
func bars(title, unit string, rows []bar) string {
	top := 0.0
	for _, r := range rows {
		top = max(top, r.value, r.ceiling, r.high)
	}
	height := 34 + barRow*float64(len(rows)) + barBottom
	d := newDrawing(plotWidth, height, title)
	x := scale{0, niceTop(top), barLeft, barRight, false}
	d.text(8, 18, "start", "#000", title+", "+unit)
	for _, v := range x.ticks() {
		d.line(x.at(v), 28, x.at(v), height-barBottom, gridGrey)
		d.text(x.at(v), height-barBottom+16, "middle", inkGrey, figureText(v))
	}
	for i, r := range rows {
		y := 32 + barRow*float64(i)
		d.text(barLeft-8, y+16, "end", "#000", r.name)
		label := figureText(r.value)
		if r.ceiling > 0 {
			d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="8" fill="%s"/>`, barLeft, y+14, x.at(r.ceiling)-barLeft, ceilingGrey)
			label += fmt.Sprintf(" of %s", figureText(r.ceiling))
		}
		d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="12" fill="%s"/>`, barLeft, y+2, x.at(r.value)-barLeft, palette(0))
		if r.high > r.low {
			d.line(x.at(r.low), y+8, x.at(r.high), y+8, "#000")
		}
		d.text(max(x.at(r.value), x.at(r.ceiling), x.at(r.high))+6, y+16, "start", inkGrey, label)
	}
	return d.end()
}

// curve is one latency distribution.
type curve struct {
	name      string
	quantiles [][2]float64 // percent, microseconds
	ceiling   bool
}

const (
	curveLeft   = 60.0
	curveRight  = plotWidth - 230
	curveHeight = 340.0
	curveBottom = curveHeight - 44
	// lastNines is the top of the vertical axis: 99.99 %.
	lastNines = 4.0
)

// nines is the vertical place of a percentile: 90 is 1, 99 is 2, 99.9 is 3.
func nines(percent float64) float64 {
	if percent >= 100 {
		return lastNines
	}
	return min(lastNines, -math.Log10(1-percent/100))
}

// latencies draws distributions: latency to the right on a logarithmic axis,
// percentiles upwards so that each nine has the same height.
func latencies(title, dashed string, curves []curve) string {
	low, high := math.Inf(1), 0.0
	for _, c := range curves {
		for _, q := range c.quantiles {
			low, high = min(low, max(q[1], 1)), max(high, q[1])
		}
	}
	if len(curves) == 0 || high == 0 {
		low, high = 1, 10
	}
	x := scale{math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(max(high, low*1.01)))), curveLeft, curveRight, true}
	y := scale{0, lastNines, curveBottom, 34, false}
	d := newDrawing(plotWidth, curveHeight, title)
	d.text(8, 18, "start", "#000", title)
	for _, v := range x.ticks() {
		d.line(x.at(v), 34, x.at(v), curveBottom, gridGrey)
		d.text(x.at(v), curveBottom+16, "middle", inkGrey, durationText(v))
	}
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		d.line(curveLeft, y.at(nines(p)), curveRight, y.at(nines(p)), gridGrey)
		d.text(curveLeft-6, y.at(nines(p))+4, "end", inkGrey, fmt.Sprintf("%g %%", p))
	}
	d.text((curveLeft+curveRight)/2, curveHeight-8, "middle", inkGrey, "latency; dashed: "+dashed)
	for i, c := range curves {
		var points [][2]float64
		for _, q := range c.quantiles {
			points = append(points, [2]float64{x.at(max(q[1], 1)), y.at(nines(q[0]))})
		}
		d.path(points, palette(i), c.ceiling)
		d.legend(i, c.name, c.ceiling)
	}
	return d.end()
}

func (d *drawing) legend(i int, name string, dashed bool) {
	y := 44 + 18*float64(i)
	d.path([][2]float64{{curveRight + 12, y}, {curveRight + 34, y}}, palette(i), dashed)
	d.text(curveRight+40, y+4, "start", "#000", name)
}

// durationText writes microseconds as people read them.
func durationText(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%g ms", us/1e3)
	}
	return fmt.Sprintf("%g us", us)
}

// overTime draws throughput over time with the moment of the fault.
func overTime(f Fault) string {
	const left, right, height = 60.0, plotWidth - 20, 240.0
	const bottom = height - 40
	top := 1.0
	if len(f.MiBPerS) > 0 {
		top = slices.Max(f.MiBPerS)
	}
	seconds := float64(len(f.MiBPerS)) * float64(f.StepMs) / 1e3
	x, y := scale{0, max(seconds, 0.1), left, right, false}, scale{0, niceTop(top), bottom, 34, false}
	d := newDrawing(plotWidth, height, f.Name)
	d.text(8, 18, "start", "#000", f.Name+": MiB/s over time; one chunk server is killed at the red line")
	for _, v := range y.ticks() {
		d.line(left, y.at(v), right, y.at(v), gridGrey)
		d.text(left-6, y.at(v)+4, "end", inkGrey, figureText(v))
	}
	for _, v := range x.ticks() {
		d.text(x.at(v), bottom+16, "middle", inkGrey, fmt.Sprintf("%g s", rounded(v)))
	}
	var points [][2]float64
	for i, v := range f.MiBPerS {
		points = append(points, [2]float64{x.at((float64(i) + 0.5) * float64(f.StepMs) / 1e3), y.at(v)})
	}
	d.path(points, palette(0), false)
	d.line(x.at(f.KilledAt), 30, x.at(f.KilledAt), bottom, "#d00")
	return d.end()
}

// rowsOf gives the bars of the cases that want wants.
func (r *Result) rowsOf(want func(Outcome) bool, value func(*Figures) float64, withCeiling bool) (rows []bar) {
	for _, c := range r.Cases {
		if strings.HasPrefix(c.Name, ceilingPrefix) || !want(c) {
			continue
		}
		b := bar{name: c.Name, value: value(&c.Figures)}
		if c.Min != nil && c.Max != nil {
			b.low, b.high = value(c.Min), value(c.Max)
		}
		if o := r.find(c.CeilingCase); o != nil && withCeiling {
			b.ceiling = value(&o.Figures)
		}
		rows = append(rows, b)
	}
	return rows
}

func (r *Result) find(name string) *Outcome {
	for i := range r.Cases {
		if r.Cases[i].Name == name {
			return &r.Cases[i]
		}
	}
	return nil
}

// curvesOf gives the distributions of cases, each with its ceiling's once.
func (r *Result) curvesOf(names ...string) (curves []curve) {
	shown := map[string]bool{}
	for _, name := range names {
		c := r.find(name)
		if c == nil {
			continue
		}
		curves = append(curves, curve{c.Name, c.Quantiles, false})
		if o := r.find(c.CeilingCase); o != nil && !shown[o.Name] {
			shown[o.Name] = true
			curves = append(curves, curve{o.Name, o.Quantiles, true})
		}
	}
	return curves
}
