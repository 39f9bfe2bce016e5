package ctl

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"strake/e2e/bench"
	"strake/internal/errs"
)

const (
	benchSize = size(512 << 20) // of the working set
	benchSeed = 1
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	c := &cobra.Command{
		Use: "bench", Short: "measure throughput, latency and processor time, beside what the machine can do", Args: exactArgs(0),
		Long: `Measure a cell. Without --cell, a throwaway cell of one metadata server and six chunk
servers, each a process on this machine, is started and removed at the end. Each case runs
right after its ceiling, bare TCP between two processes, so that the ratio says more than
the rate on a busy machine. Processor time is that of all processes together.

Cases: ` + strings.Join(bench.Names(), ", ") + `; patterns such as 'randread-*', lists, and all.`,
		Example: "  strake bench --case seqread-4m --seconds 5\n  strake bench --case 'randread-*,degraded-randread-*' --repeat 5 -o json\n" +
			"  strake bench --case seqread-4m --clients 16\n  strake bench --cell 10.0.0.1:7400 --volume bench --case all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.bench(cmd, o)
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) { r.Text(w) })
		},
	}
	benchFlags(c, &o)
	c.AddCommand(a.benchReport(), a.benchInterference(), a.benchWorker())
	return c
}

// benchFlags are the flags that the bench and its report share.
func benchFlags(c *cobra.Command, o *bench.Options) {
	f := c.Flags()
	f.StringVar(&o.Cases, "case", "all", "cases: names and patterns, comma-separated, or all")
	f.Float64Var(&o.Seconds, "seconds", 5, "length of one run of a case")
	f.IntVar(&o.Repeat, "repeat", 1, "runs of each case; figures are medians, with the least and greatest beside")
	f.IntVar(&o.Clients, "clients", 1, "client processes that start together")
	bytes := benchSize
	f.Var(&bytes, "size", "working set of the reads, written once before; writes use half of it")
	f.Uint64Var(&o.Seed, "seed", benchSeed, "seed of the order of offsets")
	f.IntVar(&o.K, "k", 0, "data shards (default: what the cell gives, 4 with six servers)")
	f.IntVar(&o.M, "m", 0, "parity shards (default: what the cell gives, 2 with six servers)")
	f.IntVar(&o.Chunkds, "chunkds", 6, "chunk servers of the throwaway cell")
	f.IntVar(&o.Metas, "metas", 1, "metadata servers of the throwaway cell: 1, 3 or 5")
	f.StringVar(&o.Dir, "dir", "", "where the throwaway cell's data goes (default: the temporary directory)")
	f.StringVar(&o.Emulate, "emulate-device", "", "shape the throwaway cell's devices: read=60MiB,write=60MiB,iops=4000,latency=100us")
	f.StringVar(&o.Volume, "volume", "", "with --cell: the volume to create, measure and remove")
	f.BoolVar(&o.Overwrite, "yes", false, "the volume may be there; what it holds is overwritten")
	f.StringVar(&o.Profile, "profile", "", "write processor profiles of the clients into this directory")
	_ = f.MarkHidden("profile")
	c.PreRun = func(*cobra.Command, []string) { o.Size = int64(bytes) }
}

// bench measures as the flags say; the global --cell names a cell that is there.
func (a *app) bench(cmd *cobra.Command, o bench.Options) (*bench.Result, error) {
	if err := a.untraced(); err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "find this program")
	}
	if o.Chunkds < 2 || o.Chunkds > maxDevServers {
		return nil, usagef("%d chunk servers: 2 to %d are possible", o.Chunkds, maxDevServers)
	}
	if cmd.Flags().Changed("cell") {
		o.Cell = a.config.Cell
	}
	o.Binary, o.Version, o.Progress = binary, Version, a.benchProgress()
	o.Command = strings.Join(append([]string{"strake"}, os.Args[1:]...), " ")
	return bench.Run(cmd.Context(), o)
}

// benchProgress tells on stderr what runs and what came out; nothing with -o json.
func (a *app) benchProgress() func(bench.Event) {
	if a.json() {
		return func(bench.Event) {}
	}
	return func(e bench.Event) {
		switch {
		case e.Run == 0:
			fmt.Fprintf(a.err, "%s ...\n", e.Case)
		case e.Figures == nil:
			fmt.Fprintf(a.err, "%-34s %d/%d ...\n", e.Case, e.Run, e.Of)
		default:
			fmt.Fprintf(a.err, "%-34s %d/%d  %8.1f MiB/s  %9.0f IOPS  p50 %.0f us  p99 %.0f us  %.2f of the ceiling\n",
				e.Case, e.Run, e.Of, e.Figures.MiBPerS, e.Figures.IOPS, e.Figures.P50, e.Figures.P99, e.Figures.RatioToCeiling)
		}
	}
}

// benchWorker is the other end of the bench: the process that makes the load.
func (a *app) benchWorker() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "make load as the bench orders on stdin", Args: exactArgs(0), Hidden: true,
		Example: "  strake bench worker",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Work(cmd.Context(), cmd.InOrStdin(), a.out)
		},
	}
}
