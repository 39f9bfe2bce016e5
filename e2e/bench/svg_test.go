package bench

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

func TestScalesMapEndsToEnds(t *testing.T) {
	for _, s := range []scale{{0, 50, 10, 110, false}, {1, 1000, 10, 110, true}, {0, 4, 300, 20, false}} {
		if math.Abs(s.at(s.from)-s.begin) > 1e-9 || math.Abs(s.at(s.to)-s.end) > 1e-9 {
			t.Errorf("%+v: %g and %g", s, s.at(s.from), s.at(s.to))
		}
		for _, v := range s.ticks() {
			if v < s.from-1e-9 || v > s.to*1.001 {
				t.Errorf("%+v has a tick at %g", s, v)
			}
		}
	}
	if got := (scale{1, 1000, 0, 3, true}).at(10); math.Abs(got-1) > 1e-9 {
		t.Errorf("10 stands at %g on a logarithmic axis of three decades", got)
	}
	if nines(90) != 1 || math.Abs(nines(99.9)-3) > 1e-9 || nines(100) != lastNines {
		t.Errorf("nines: %g %g %g", nines(90), nines(99.9), nines(100))
	}
}

// TestDrawingsAreWellFormed draws odd values, and names that would break out.
func TestDrawingsAreWellFormed(t *testing.T) {
	odd := `a<b>&"c"`
	for name, svg := range map[string]string{
		"bars":         bars(odd, "MiB/s", []bar{{odd, 10, 20, 5, 15}, {"zero", 0, 0, 0, 0}}),
		"latencies":    latencies(odd, odd, []curve{{odd, [][2]float64{{50, 0}, {99, 20}, {100, 1e7}}, true}, {"none", nil, false}}),
		"no curves":    latencies("x", "", nil),
		"over time":    overTime(Fault{Name: odd, StepMs: 100, MiBPerS: []float64{1, 0, 3}, KilledAt: 0.2}),
		"an empty one": overTime(Fault{StepMs: 100}),
	} {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v\n%s", name, err, svg)
				break
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, "<b>") {
			t.Errorf("%s: %s", name, svg)
		}
	}
}
