package ctl

import (
	"context"
	"errors"
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
	var id uint64
	c := &cobra.Command{
		Use: "rm NAME", Short: "remove a volume (kept 24 h for undelete)", Args: exactArgs(1),
		Long: `Remove a volume, with its snapshots and tags. It is kept for 24 hours, counted by the
metadata server that leads from when it began to lead at the latest, and can be brought back
until then. With --now its space is freed at once; that also goes for a volume that was removed
before, which --id names where several removed volumes have had the name.`,
		Example: "  strake volume rm train --yes\n  strake volume rm train --now --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if id != 0 && !now {
				return usagef("--id goes with --now: it names a volume that was removed before")
			}
			return a.withVolume(cmd.Context(), "remove volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.remove(ctx, cell, args[0], id, now, yes)
			})
		},
	}
	c.Flags().BoolVar(&now, "now", false, "free its space at once; it can't be brought back")
	c.Flags().Uint64Var(&id, "id", 0, "with --now: the removed volume with this id, as `volume ls --removed` shows it")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

// remove removes a volume. With now it also takes one that was removed before, when
// nothing else has its name or when its id is given.
func (a *app) remove(ctx context.Context, cell *client.Cell, name string, id uint64, now, yes bool) error {
	v, err := cell.Volume(ctx, name)
	before := now && (id != 0 || errors.Is(err, client.ErrNotFound))
	if before {
		v, err = a.removedBefore(ctx, cell, name, id, err)
	}
	if err != nil {
		return err
	}
	if !yes {
		return errs.New(errs.InvalidArgument, "remove volume "+name, "%s", lostWith(&v, now)).WithHint("add --yes to remove it")
	}
	if before {
		_, err = cell.PurgeVolume(ctx, name, v.ID)
	} else {
		err = cell.RemoveVolume(ctx, name, now)
	}
	if err != nil {
		return err
	}
	return a.print(map[string]any{"removed": v.Name, "undelete_possible": !now}, func(w io.Writer) {
		fmt.Fprintf(w, "removed %s\n", v.Name)
		if !now {
			fmt.Fprintf(w, "\nbring it back within 24 h:  strake volume undelete %s\n", v.Name)
		}
	})
}

// removedBefore finds the volume that `rm --now` means, which nothing else names:
// missing says so.
func (a *app) removedBefore(ctx context.Context, cell *client.Cell, name string, id uint64, missing error) (client.VolumeInfo, error) {
	list, err := cell.RemovedVolumes(ctx, name)
	switch {
	case err != nil:
		return client.VolumeInfo{}, err
	case id == 0 && len(list) == 0:
		return client.VolumeInfo{}, missing
	case id == 0 && len(list) == 1:
		return list[0], nil
	}
	for _, v := range list {
		if v.ID == id {
			return v, nil
		}
	}
	return client.VolumeInfo{}, errs.New(errs.InvalidArgument, "remove volume "+name, "%d removed volumes are called so, none has id %d", len(list), id).
		WithHint("`strake volume ls --removed` lists them; --id says which one")
}

// lostWith tells what goes with a volume.
func lostWith(v *client.VolumeInfo, now bool) string {
	with, back := "", "it could be brought back within 24 h"
	if v.Snapshots > 0 {
		with = fmt.Sprintf(", and with it its %d snapshots and tags", v.Snapshots)
		back = "they could be brought back within 24 h"
	}
	if now {
		back = "that can't be taken back"
	}
	return fmt.Sprintf("%s with %s stored would be removed%s; %s", sizeText(uint64(v.Size)), sizeText(v.StoredBytes), with, back)
}

func (a *app) volumeUndelete() *cobra.Command {
	var id uint64
	c := &cobra.Command{
		Use: "undelete NAME", Short: "bring a removed volume back", Args: exactArgs(1),
		Example: "  strake volume undelete train\n  strake volume undelete train --id 17",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "undelete volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				v, err := cell.UndeleteVolume(ctx, args[0], id)
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s is back\n", v.Name) })
			})
		},
	}
	c.Flags().Uint64Var(&id, "id", 0, "which one, where several removed volumes have had the name")
	return c
}
