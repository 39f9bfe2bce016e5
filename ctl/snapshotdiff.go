package ctl

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
)

// changedRange is one range of a diff.
type changedRange struct {
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

func (a *app) snapshotDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff OLD NEW", Short: "list the ranges in which two snapshots differ", Args: exactArgs(2),
		Long: `List the ranges of whole 4 KiB blocks in which two snapshots, or a snapshot and a volume,
differ. Nothing is read but the maps and the blocks' checksums.`,
		Example: "  strake snapshot diff train@monday train@tuesday\n  strake snapshot diff train@monday train -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCellOf(cmd.Context(), args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.diff(ctx, cell, args[0], args[1])
			})
		},
	}
}

func (a *app) diff(ctx context.Context, cell *client.Cell, from, to string) error {
	var list []changedRange
	var total int64
	out := bufio.NewWriter(a.out)
	err := cell.Diff(ctx, from, to, func(off, n int64) error {
		total += n
		if a.json() {
			list = append(list, changedRange{off, n})
			return nil
		}
		_, err := fmt.Fprintf(out, "%d\t%d\n", off, n)
		return err
	})
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return a.print(map[string]any{"changed": orEmpty(list), "changed_bytes": total}, func(w io.Writer) {
		fmt.Fprintf(a.err, "%s in whole blocks differ (offset, bytes)\n", sizeText(uint64(total)))
	})
}
