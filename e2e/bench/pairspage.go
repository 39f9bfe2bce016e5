package bench

import (
	"fmt"
	"strings"
)

// WriteInterferenceReport writes DIR/report.html and DIR/bench.json of a matrix
// and gives the path of the former.
func WriteInterferenceReport(dir string, r *Interference) (string, error) {
	var table strings.Builder
	r.Text(&table)
	facts := (&Result{Cell: r.Cell, Machine: r.Machine, Run: r.Run}).facts()
	headline, rows, _ := strings.Cut(table.String(), "\n")
	page, err := render(page{Headline: headline, Remarks: r.Run.Notes, Facts: facts, Sections: r.sections(), Table: rows,
		Again: []string{r.Run.Command, "strake bench report DIR --from bench.json"}})
	if err != nil {
		return "", err
	}
	return writeReport(dir, r, page)
}

// sections have, for each victim, its latencies beside every aggressor, with
// quality of service and without.
func (r *Interference) sections() (list []section) {
	for _, v := range append(victims(), control()) {
		s := section{Title: v.Name, Words: fmt.Sprintf("%s every %.3g ms, counted from when each was due.", bytesText(float64(v.Block)), 1e3/v.Rate)}
		for _, from := range []struct {
			title string
			pairs []*Pair
		}{{"with quality of service", r.Pairs}, {"without", r.Off}, {"bare TCP, with quality of service", r.Control}} {
			if curves := besides(from.pairs, v.Name); len(curves) > 0 {
				s.Plots = append(s.Plots, plots(latencies(v.Name+", "+from.title, "alone", curves))...)
			}
		}
		if len(s.Plots) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// besides gives a victim's latencies by aggressor.
func besides(list []*Pair, victim string) (curves []curve) {
	for _, p := range list {
		if p.Victim == victim {
			curves = append(curves, curve{p.Aggressor, p.Quantiles, p.Aggressor == alone})
		}
	}
	return curves
}
