package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// palette is for lines and bars; its colours stay apart for the colour-blind.
func palette(i int) string {
	colours := []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f3c8d", "#444444"}
	return colours[i%len(colours)]
}

const (
	plotWidth   = 860.0
	ceilingGrey = "#b8bcc2"
	inkGrey     = "#555"
	gridGrey    = "#e4e6e9"
)

// drawing is an SVG that grows.
type drawing struct{ strings.Builder }

func newDrawing(width, height float64, title string) *drawing {
	d := &drawing{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" font-family="sans-serif" font-size="12">`,
		width, height, width, height)
	d.add(`<title>%s</title><rect width="%g" height="%g" fill="white"/>`, html.EscapeString(title), width, height)
	return d
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.Builder, format+"\n", args...) }

func (d *drawing) end() string {
	d.add(`</svg>`)
	return d.String()
}

// text writes at (x, y); anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, colour, text string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, colour, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string) {
	d.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x1, y1, x2, y2, colour)
}

// path draws points as one line; a dashed one is a ceiling's.
func (d *drawing) path(points [][2]float64, colour string, dashed bool) {
	var s strings.Builder
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&s, "%s%.1f %.1f", command, p[0], p[1])
	}
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="4 3"`
	}
	d.add(`<path d="%s" fill="none" stroke="%s" stroke-width="1.8"%s/>`, s.String(), colour, dash)
}

// scale maps values to pixels.
type scale struct {
	from, to   float64 // values
	begin, end float64 // pixels
	log        bool
}

func (s scale) at(v float64) float64 {
	a, b := s.from, s.to
	if s.log {
		v, a, b = math.Log10(max(v, s.from)), math.Log10(a), math.Log10(b)
	}
	if a == b {
		return s.begin
	}
	return s.begin + (v-a)/(b-a)*(s.end-s.begin)
}

// ticks are round values on the scale: powers of ten on a logarithmic one.
func (s scale) ticks() (list []float64) {
	if s.log {
		for v := math.Pow(10, math.Ceil(math.Log10(s.from)-1e-9)); v <= s.to*1.0001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := niceStep(s.to - s.from)
	for v := s.from; v <= s.to*1.0001; v += step {
		list = append(list, v)
	}
	return list
}

// niceStep divides a span into about five steps of 1, 2 or 5 times a power of ten.
func niceStep(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, n := range []float64{1, 2, 5} {
		if span/(n*power) <= 6 {
			return n * power
		}
	}
	return 10 * power
}

// niceTop is the end of a linear scale that holds v.
func niceTop(v float64) float64 {
	step := niceStep(v)
	return max(step, math.Ceil(v/step)*step)
}

// figureText writes a value as an axis shows it.
func figureText(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
