package ctl

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"strake/e2e/bench"
	"strake/internal/errs"
)

const (
	// matrixDevices is slow enough that two cores can saturate six of them.
	matrixDevices = "read=60MiB,write=60MiB,iops=4000,latency=100us"
	matrixSize    = size(256 << 20)
	matrixServers = 6
)

func (a *app) benchInterference() *cobra.Command {
	o := bench.Options{Clients: 1, Chunkds: matrixServers}
	bytes := matrixSize
	var pairs string
	victims, aggressors := bench.PairNames()
	c := &cobra.Command{
		Use: "interference", Short: "measure how much loads hurt each other, with quality of service and without", Args: exactArgs(0),
		Long: `Measure every victim beside every aggressor in a throwaway cell, then the same without
quality of service, and a bare TCP echo beside the same aggressors as control. Victims run
at a fixed rate and their latency counts from when each operation was due.

Victims: ` + strings.Join(victims, ", ") + `. Aggressors: ` + strings.Join(aggressors, ", ") + `.`,
		Example: "  strake bench interference --seconds 5\n  strake bench interference --pairs 'inference-*:checkpoint-writes' --repeat 5 -o json",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.untraced(); err != nil {
				return err
			}
			if o.Binary, err = os.Executable(); err != nil {
				return errs.As(err, errs.Unavailable, "find this program")
			}
			if cmd.Flags().Changed("cell") {
				o.Cell, o.Volume = a.config.Cell, "bench"
			}
			if o.Dir == "" && o.Emulate != "" {
				o.Dir = inMemory()
			}
			o.Size, o.Version, o.Progress = int64(bytes), Version, a.pairProgress()
			o.Command = strings.Join(append([]string{"strake"}, os.Args[1:]...), " ")
			r, err := bench.Interfere(cmd.Context(), o, pairs)
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) { r.Text(w) })
		},
	}
	f := c.Flags()
	f.Float64Var(&o.Seconds, "seconds", 5, "length of one window")
	f.IntVar(&o.Repeat, "repeat", 1, "runs of each pair; figures are medians, with the least and greatest beside")
	f.StringVar(&pairs, "pairs", "", "VICTIM:AGGRESSOR patterns, comma-separated (default: all)")
	f.Var(&bytes, "size", "volume that the victims read, written once before")
	f.Uint64Var(&o.Seed, "seed", benchSeed, "seed of the order of offsets")
	f.StringVar(&o.Emulate, "emulate-device", matrixDevices, "shape of each device; empty: as they are")
	f.StringVar(&o.Dir, "dir", "", "where the throwaway cells' data goes (default: memory, so that emulated devices alone are slow; else the temporary directory)")
	return c
}

const (
	memoryDir = "/dev/shm"
	// matrixBytes is what the matrix may write before it is removed.
	matrixBytes = 8 << 30
)

// inMemory is a file system in memory with room for the matrix, "" when there is
// none: the machine's own disk must not be slower than the devices it emulates.
func inMemory() string {
	var s unix.Statfs_t
	if err := unix.Statfs(memoryDir, &s); err != nil || s.Type != unix.TMPFS_MAGIC || uint64(s.Bsize)*s.Bavail < matrixBytes {
		return ""
	}
	return memoryDir
}

// pairProgress tells on stderr what runs and what came out; nothing with -o json.
func (a *app) pairProgress() func(bench.Event) {
	if a.json() {
		return func(bench.Event) {}
	}
	return func(e bench.Event) {
		if f := e.Figures; f != nil {
			fmt.Fprintf(a.err, "%-50s p50 %8.0f us  p99 %8.0f us  %6.0f IOPS, aggressor %.1f MiB/s\n", e.Case, f.P50, f.P99, f.IOPS, f.MiBPerS)
		}
	}
}
