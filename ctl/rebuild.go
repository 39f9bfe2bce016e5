package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) rebuildCommand() *cobra.Command {
	return group("rebuild", "making lost shards again", &cobra.Command{
		Use: "status", Short: "what is lost, what moves, how fast, and when it is done", Args: exactArgs(0),
		Example: "  strake rebuild status\n  strake rebuild status -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				r, err := cell.Rebuild(ctx)
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) { rebuildText(w, &r) })
			})
		},
	})
}

func rebuildText(w io.Writer, r *client.RebuildInfo) {
	lines := [][2]string{
		{"lost", fmt.Sprintf("%d shards, %s", r.LostShards, sizeText(r.LostBytes))},
		{"moving", fmt.Sprintf("%d shards, %s", r.MovingShards, sizeText(r.MovingBytes))},
		{"at risk", fmt.Sprintf("%d segments", r.AtRisk)},
		{"running", fmt.Sprintf("%d tasks, %s/s", r.Running, sizeText(r.BytesPerSecond))},
		{"done", fmt.Sprintf("%d shards made again, %s; %d repaired in place", r.RebuiltShards, sizeText(r.RebuiltBytes), r.RepairedShards)},
		{"eta", etaText(r)},
	}
	if r.Failed > 0 {
		lines = append(lines, [2]string{"failed tries", fmt.Sprintf("%d, the last: %s", r.Failed, r.LastError)})
	}
	pairs(w, lines)
	if len(r.Waiting) > 0 {
		fmt.Fprintf(w, "\nnot given up for %v: %s\n", time.Duration(r.RebuildAfterMs)*time.Millisecond, strings.Join(r.Waiting, "; "))
	}
	if r.Lacking > 0 {
		fmt.Fprintf(w, "\n! %d segments have fewer than k shards at hand: bring their servers back\n", r.Lacking)
	}
	if r.Homeless > 0 {
		fmt.Fprintf(w, "\n! for shards of %d segments no device is left: add servers or devices\n", r.Homeless)
	}
}

func etaText(r *client.RebuildInfo) string {
	switch {
	case r.LostBytes+r.MovingBytes == 0:
		return "nothing to do"
	case r.ETASeconds == 0:
		return "not known yet"
	}
	return (time.Duration(r.ETASeconds) * time.Second).String()
}
