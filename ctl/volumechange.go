package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

func (a *app) volumeResize() *cobra.Command {
	var bytes size
	var yes bool
	c := &cobra.Command{
		Use: "resize NAME --size SIZE", Short: "grow or shrink a volume", Args: exactArgs(1),
		Example: "  strake volume resize train --size 20TiB\n  strake volume resize train --size 1TiB --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			op := "resize volume " + args[0]
			if err := checkVolume(op, int64(bytes), 0, 0, false); err != nil {
				return err
			}
			return a.withVolume(cmd.Context(), op, args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.resize(ctx, cell, op, args[0], int64(bytes), yes)
			})
		},
	}
	c.Flags().Var(&bytes, "size", "new size; a multiple of 4 KiB")
	c.Flags().BoolVar(&yes, "yes", false, "shrink, and lose what lies beyond the new size")
	_ = c.MarkFlagRequired("size")
	return c
}

func (a *app) resize(ctx context.Context, cell *client.Cell, op, name string, bytes int64, yes bool) error {
	old, err := cell.Volume(ctx, name)
	if err != nil {
		return err
	}
	if bytes < old.Size && !yes {
		return errs.New(errs.InvalidArgument, op, "the last %s of %s would be lost",
			sizeText(uint64(old.Size-bytes)), sizeText(uint64(old.Size))).WithHint("add --yes to lose them")
	}
	v, err := cell.ResizeVolume(ctx, name, bytes, yes)
	if err != nil {
		return err
	}
	return a.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s, was %s\n", v.Name, sizeText(uint64(v.Size)), sizeText(uint64(old.Size)))
	})
}

func (a *app) volumeRemove() *cobra.Command {
	var now, yes bool
	c := &cobra.Command{
		Use: "rm NAME", Short: "remove a volume (kept 24 h for undelete)", Args: exactArgs(1),
		Example: "  strake volume rm train --yes\n  strake volume rm train --now --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "remove volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.remove(ctx, cell, args[0], now, yes)
			})
		},
	}
	c.Flags().BoolVar(&now, "now", false, "free its space at once; it can't be brought back")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) remove(ctx context.Context, cell *client.Cell, name string, now, yes bool) error {
	v, err := cell.Volume(ctx, name)
	if err != nil {
		return err
	}
	if !yes {
		lost := "it could be brought back within 24 h"
		if now {
			lost = "it could not be brought back"
		}
		return errs.New(errs.InvalidArgument, "remove volume "+name, "%s with %s stored would be removed; %s",
			sizeText(uint64(v.Size)), sizeText(v.StoredBytes), lost).WithHint("add --yes to remove it")
	}
	if err := cell.RemoveVolume(ctx, name, now); err != nil {
		return err
	}
	return a.print(map[string]any{"removed": v.Name, "undelete_possible": !now}, func(w io.Writer) {
		fmt.Fprintf(w, "removed %s\n", v.Name)
		if !now {
			fmt.Fprintf(w, "\nbring it back within 24 h:  strake volume undelete %s\n", v.Name)
		}
	})
}

func (a *app) volumeUndelete() *cobra.Command {
	return &cobra.Command{
		Use: "undelete NAME", Short: "bring a removed volume back", Args: exactArgs(1),
		Example: "  strake volume undelete train",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "undelete volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				v, err := cell.UndeleteVolume(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s is back\n", v.Name) })
			})
		},
	}
}
