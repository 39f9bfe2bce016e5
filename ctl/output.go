package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
)

// json tells whether the output is for machines.
func (a *app) json() bool { return a.output == "json" }

// print writes v as JSON, or runs text for people. Error: the output can't be written.
func (a *app) print(v any, text func(w io.Writer)) error {
	if !a.json() {
		text(a.out)
		if s, ok := a.out.(*sink); ok {
			return s.failed()
		}
		return nil
	}
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// logger is the daemons' log on stderr: text, or JSON with -o json.
func (a *app) logger() *slog.Logger {
	if a.json() {
		return slog.New(slog.NewJSONHandler(a.err, nil))
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// table writes rows in aligned columns under a header.
func table(w io.Writer, header []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// pairs writes name and value lines, aligned; lines without a value are left out.
func pairs(w io.Writer, lines [][2]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", l[0], l[1])
		}
	}
	t.Flush()
}

// orEmpty makes an empty list of none, so that JSON has [] and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
