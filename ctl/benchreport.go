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
what was measured before.`,
		Example: "  strake bench report out --seconds 5 --repeat 5\n  strake bench report out --from bench.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.benchResult(cmd, o, from)
			if err != nil {
				return err
			}
			path, err := bench.WriteReport(args[0], r)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"report": path}, func(w io.Writer) { fmt.Fprintf(w, "wrote %s\n", path) })
		},
	}
	benchFlags(c, &o)
	c.Flags().StringVar(&from, "from", "", "draw this result of strake bench -o json, measure nothing")
	return c
}

// benchResult measures, or reads what was measured before.
func (a *app) benchResult(cmd *cobra.Command, o bench.Options, from string) (*bench.Result, error) {
	if from == "" {
		o.Faults = !cmd.Flags().Changed("cell")
		return a.bench(cmd, o)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return nil, errs.As(err, errs.NotFound, "read a result")
	}
	r := &bench.Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, errs.As(err, errs.InvalidArgument, "read the result %s", from)
	}
	return r, nil
}
