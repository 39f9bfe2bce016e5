package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) rebalanceCommand() *cobra.Command {
	return group("rebalance", "moving sealed segments from full devices to empty ones",
		a.rebalanceVerb("start", "move until devices are filled alike, in the background", client.StartRebalance),
		a.rebalanceVerb("status", "how even devices are, what must move, how fast, and when it is done", 0),
		a.rebalanceVerb("stop", "begin no more moves", client.StopRebalance))
}

func (a *app) rebalanceVerb(verb, short string, change client.RebalanceChange) *cobra.Command {
	return &cobra.Command{
		Use: verb, Short: short, Args: exactArgs(0),
		Example: "  strake rebalance " + verb + "\n  strake rebalance " + verb + " -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				r, err := cell.Rebalance(ctx, change)
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) { rebalanceText(w, &r) })
			})
		},
	}
}

func rebalanceText(w io.Writer, r *client.RebalanceInfo) {
	running, eta := "no", "nothing to do"
	if r.Running {
		running = fmt.Sprintf("%d moves, %s/s", r.Tasks, sizeText(r.BytesPerSecond))
	}
	switch {
	case r.LeftBytes > 0 && !r.Running:
		eta = "not running:  strake rebalance start"
	case r.LeftBytes > 0 && r.ETASeconds == 0:
		eta = "not known yet"
	case r.LeftBytes > 0:
		eta = (time.Duration(r.ETASeconds) * time.Second).String()
	}
	pairs(w, [][2]string{
		{"running", running},
		{"spread", fmt.Sprintf("%.1f %% between the fullest device and the emptiest; done at %.0f %%", float64(r.SpreadPermille)/10, float64(r.GoalPermille)/10)},
		{"left", sizeText(r.LeftBytes)},
		{"moved", fmt.Sprintf("%d shards, %s", r.MovedShards, sizeText(r.MovedBytes))},
		{"eta", eta},
	})
	var rows [][]string
	for _, d := range r.Devices {
		fill := 100 * float64(d.HeldBytes) / float64(max(1, d.TotalBytes))
		rows = append(rows, []string{strconv.FormatUint(d.Device, 10), strconv.FormatUint(d.Server, 10), sizeText(d.HeldBytes), sizeText(d.TotalBytes), fmt.Sprintf("%.1f %%", fill)})
	}
	fmt.Fprintln(w)
	table(w, []string{"DEVICE", "SERVER", "HOLDS", "TOTAL", "FILL"}, rows)
}
