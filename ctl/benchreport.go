package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"strake/e2e/bench"
	"strake/internal/errs"
)

func (a *app) benchReport() *cobra.Command {
	var o bench.Options
	var from string
	c := &cobra.Command{
		Use: "report DIR", Short: "measure, and write a report with plots into a directory", Args: exactArgs(1),
		Long: `Measure all cases, and throughput over time while a chunk server is killed, and write
DIR/report.html, which needs nothing else to be read, beside DIR/bench.json. With --from, draw
what was measured before, by strake bench or strake bench interference.`,
		Example: "  strake bench report out --seconds 5 --repeat 5\n  strake bench report out --from bench.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.report(cmd, o, args[0], from)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"report": path}, func(w io.Writer) { fmt.Fprintf(w, "wrote %s\n", path) })
		},
	}
	benchFlags(c, &o)
	c.Flags().StringVar(&from, "from", "", "draw this result of strake bench [interference] -o json, measure nothing")
	return c
}

// report measures, or reads what was measured before, and draws it.
func (a *app) report(cmd *cobra.Command, o bench.Options, dir, from string) (string, error) {
	if from == "" {
		o.Faults = !cmd.Flags().Changed("cell")
		r, err := a.bench(cmd, o)
		if err != nil {
			return "", err
		}
		return bench.WriteReport(dir, r)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return "", errs.As(err, errs.NotFound, "read a result")
	}
	kind := struct{ Cases, Pairs json.RawMessage }{}
	if err := json.Unmarshal(b, &kind); err != nil {
		return "", errs.As(err, errs.InvalidArgument, "read the result %s", from)
	}
	if kind.Pairs != nil {
		r := &bench.Interference{}
		if err := json.Unmarshal(b, r); err != nil {
			return "", errs.As(err, errs.InvalidArgument, "read the result %s", from)
		}
		return bench.WriteInterferenceReport(dir, r)
	}
	r := &bench.Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return "", errs.As(err, errs.InvalidArgument, "read the result %s", from)
	}
	return bench.WriteReport(dir, r)
}
