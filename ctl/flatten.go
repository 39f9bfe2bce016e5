package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

// flattenLook is how often a flatten that is waited for is looked at.
const flattenLook = 500 * time.Millisecond

func (a *app) volumeFlatten() *cobra.Command {
	var detach, stop bool
	c := &cobra.Command{
		Use: "flatten NAME", Short: "make a clone independent of what it began as", Args: exactArgs(1),
		Long: `Copy, in the background, what a clone still shares with the snapshot that it began as,
until it needs nothing of it any more. The clone stays writable. Whoever writes it does
the work, or a chunk server's janitor while nobody does; it goes on after a crash where
it was. Without --detach this waits and shows how far it is: Ctrl-C stops waiting, and
--stop the work; what was copied stays. Snapshots of the clone that were taken before
keep what it began as until they are removed. A volume that was rolled back is a clone
of what it was, too.`,
		Example: "  strake volume flatten experiment\n  strake volume flatten experiment --detach\n  strake volume flatten experiment --stop",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "flatten volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				v, err := cell.FlattenVolume(ctx, args[0], stop)
				if err == nil && !stop && !detach {
					v, err = a.awaitFlat(ctx, cell, v)
				}
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { flattenText(w, v, stop) })
			})
		},
	}
	c.Flags().BoolVar(&detach, "detach", false, "don't wait")
	c.Flags().BoolVar(&stop, "stop", false, "stop a flatten that is under way")
	return c
}

// awaitFlat waits until a flatten has ended.
func (a *app) awaitFlat(ctx context.Context, cell *client.Cell, v client.VolumeInfo) (client.VolumeInfo, error) {
	p := a.newProgress("flatten "+v.Name, int64(v.Inherited))
	defer p.end()
	for left := v.Inherited; v.Flattening; {
		select {
		case <-ctx.Done():
			return v, errs.Wrap(ctx.Err(), "wait until %s is flat, which goes on in the background", v.Name)
		case <-time.After(flattenLook):
		}
		now, err := cell.Volume(ctx, v.Name)
		if err != nil {
			return v, err
		}
		p.add(int64(left) - int64(min(left, now.Inherited)))
		v, left = now, min(left, now.Inherited)
	}
	return v, nil
}

func flattenText(w io.Writer, v client.VolumeInfo, stopped bool) {
	switch {
	case stopped && v.Origin != "":
		fmt.Fprintf(w, "%s is a clone of %s as before, and shares %s with it\n", v.Name, v.Origin, sizeText(v.Inherited))
	case v.Flattening:
		fmt.Fprintf(w, "%s is being flattened: %s to copy\n\nhow far it is:  strake volume show %s\n", v.Name, sizeText(v.Inherited), v.Name)
	case v.Origin != "":
		fmt.Fprintf(w, "%s shares nothing with %s any more; snapshots of it that are older still do\n", v.Name, v.Origin)
	default:
		fmt.Fprintf(w, "%s needs no other volume\n", v.Name)
	}
}
