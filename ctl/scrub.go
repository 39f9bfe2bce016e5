package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) scrubCommand() *cobra.Command {
	return group("scrub", "reading and verifying everything that is stored", a.scrubStart(), a.scrubStatus())
}

func (a *app) scrubStart() *cobra.Command {
	var deep bool
	c := &cobra.Command{
		Use: "start", Short: "begin a cycle on every device now", Args: exactArgs(0),
		Example: "  strake scrub start\n  strake scrub start --deep",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.scrub(cmd.Context(), true, deep) },
	}
	c.Flags().BoolVar(&deep, "deep", false, "encode again and compare parity")
	return c
}

func (a *app) scrubStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "how the cycles stand, and what they found", Args: exactArgs(0),
		Example: "  strake scrub status\n  strake scrub status -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.scrub(cmd.Context(), false, false) },
	}
}

func (a *app) scrub(ctx context.Context, start, deep bool) error {
	return a.withCell(ctx, func(ctx context.Context, cell *client.Cell) error {
		list, err := cell.Scrub(ctx, start, deep)
		if err != nil {
			return err
		}
		return a.print(map[string]any{"devices": orEmpty(list)}, func(w io.Writer) { scrubText(w, list) })
	})
}

func scrubText(w io.Writer, list []client.ScrubInfo) {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	var rows [][]string
	for i := range list {
		d := &list[i]
		state := "waits"
		switch {
		case d.Error != "":
			state = "no answer"
		case d.Running && d.Deep:
			state = "deep"
		case d.Running:
			state = "running"
		}
		rows = append(rows, []string{number(d.Server), number(d.Device), state, number(d.Shards) + "/" + number(d.TotalShards),
			sizeText(d.Bytes) + " of " + sizeText(d.TotalBytes), strconv.FormatUint(d.ETASeconds, 10) + "s", number(d.Cycles), number(d.Found)})
	}
	table(w, []string{"SERVER", "DEVICE", "STATE", "SHARDS", "BYTES", "ETA", "CYCLES", "FOUND"}, rows)
	for i := range list {
		for _, f := range list[i].Findings {
			fmt.Fprintf(w, "\n! shard %d/%d on device %d at %d: %s\n", f.Segment, f.Shard, list[i].Device, f.Offset, f.Message)
		}
		if list[i].Error != "" {
			fmt.Fprintf(w, "\n! server %d: %s\n", list[i].Server, list[i].Error)
		}
	}
}
