package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

func (a *app) volumeRecover() *cobra.Command {
	var after int64
	var yes bool
	c := &cobra.Command{
		Use: "recover NAME", Short: "recover a volume whose writer is gone, if need be with loss", Args: exactArgs(1),
		Long: `Recover a volume whose writer is gone, as the next one that opens it would.

When that can't be decided, because more servers are out of reach than the parity
covers, it says which. They may come back: then nothing is lost. Only when they are
lost for ever, --accept-loss-after SEQ gives up what can't be decided: the volume's log
ends where it stands, at SEQ or later, and stays readable up to there. Without --yes it
tells what would be lost. The cell keeps on record who accepted the loss.`,
		Example: "  strake volume recover train\n  strake volume recover train --accept-loss-after 1234\n  strake volume recover train --accept-loss-after 1234 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			o := client.RecoverOptions{AcceptLoss: cmd.Flags().Changed("accept-loss-after"), LossAfter: uint64(max(after, 0)), Commit: yes}
			if after < 0 || yes && !o.AcceptLoss {
				return usagef("--yes goes with --accept-loss-after SEQ, and SEQ is 0 or more")
			}
			return a.withVolume(cmd.Context(), "recover volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.recoverVolume(ctx, cell, args[0], o)
			})
		},
	}
	c.Flags().Int64Var(&after, "accept-loss-after", 0, "give up what can't be decided after this seq")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) recoverVolume(ctx context.Context, cell *client.Cell, name string, o client.RecoverOptions) error {
	r, err := cell.RecoverVolume(ctx, name, o)
	if err != nil {
		return recoverHint(err, name, o)
	}
	if !r.Done {
		return errs.New(errs.InvalidArgument, "recover volume "+name, "everything after seq %d would be lost: %s", r.Cut, lossText(r)).
			WithHint("to lose it: strake volume recover %s --accept-loss-after %d --yes", name, r.Cut)
	}
	return a.print(r, func(w io.Writer) {
		if r.Blocked == "" {
			fmt.Fprintf(w, "%s is recovered up to seq %d; nothing is lost\n", r.Volume, r.Cut)
			return
		}
		fmt.Fprintf(w, "%s ends at seq %d now; lost: %s\n", r.Volume, r.Cut, lossText(r))
	})
}

// recoverHint tells that a loss can be accepted, where it was not.
func recoverHint(err error, name string, o client.RecoverOptions) error {
	kind := errs.KindOf(err)
	if o.AcceptLoss || kind != errs.Undecided && kind != errs.Corrupt && kind != errs.Unavailable {
		return err
	}
	return errs.As(err, kind, "").(*errs.Error).
		WithHint("bring the named servers back, with their devices; if they are lost for ever: strake volume recover %s --accept-loss-after 0 tells what would be lost", name)
}

func lossText(r client.Recovered) string {
	if r.LostStripes == 0 {
		return "what no server within reach has seen"
	}
	return fmt.Sprintf("%d stripes with %s, up to seq %d, that some server still shows, and what none within reach has seen",
		r.LostStripes, sizeText(r.LostBytes), r.LastLost)
}
