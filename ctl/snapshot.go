package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
	"strake/internal/layout"
)

func (a *app) snapshotCommand() *cobra.Command {
	return group("snapshot", "freeze volumes, and go back to what they were",
		a.snapshotCreate(), a.snapshotList(), a.snapshotShow(), a.snapshotRemove(), a.snapshotRollback(), a.snapshotDiff())
}

// checkSnapshots refuses what no snapshot can be called, before anything is dialled.
func checkSnapshots(op string, names ...string) error {
	for _, name := range names {
		n, err := layout.ParseVolumeName(name)
		if err == nil && n.Snapshot == "" {
			err = fmt.Errorf("%q names a volume", name)
		}
		if err != nil {
			return errs.As(err, errs.InvalidArgument, "%s", op).(*errs.Error).WithHint("a snapshot is [tenant/]volume@name")
		}
	}
	return nil
}

// withSnapshots is withCell for a verb on snapshots of one cell's volumes. In a fleet
// the cell that has the first of the volumes is looked for.
func (a *app) withSnapshots(ctx context.Context, op string, names []string, f func(context.Context, *client.Cell) error) error {
	if err := checkSnapshots(op, names...); err != nil {
		return err
	}
	return a.withCellOf(ctx, names[0], f)
}

// withCellOf is withCell, in a fleet with the cell that has the volume of a snapshot,
// or the volume.
func (a *app) withCellOf(ctx context.Context, name string, f func(context.Context, *client.Cell) error) error {
	volume, _, _ := strings.Cut(name, "@")
	if err := a.findCell(ctx, volume); err != nil {
		return err
	}
	return a.withCell(ctx, f)
}

func (a *app) snapshotCreate() *cobra.Command {
	return &cobra.Command{
		Use: "create VOLUME@NAME...", Short: "freeze one or several volumes", Args: someArgs,
		Long: `Freeze volumes as they are: each snapshot holds all that was written before.
Several volumes are frozen in one step, or none. A volume that is written on another node is
flushed there first; a writer that does not answer within 5 s is named.`,
		Example: "  strake snapshot create train@monday\n  strake snapshot create model@step-1000 optimizer@step-1000",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "create snapshot", args, func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.CreateSnapshots(ctx, args...)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"snapshots": orEmpty(list)}, func(w io.Writer) {
					for _, s := range list {
						fmt.Fprintf(w, "created %s\n", s.Name)
					}
				})
			})
		},
	}
}

// someArgs wants at least one argument.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s wants at least one argument: %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

func (a *app) snapshotList() *cobra.Command {
	var after uint64
	var most int
	c := &cobra.Command{
		Use: "ls VOLUME", Short: "list a volume's snapshots and tags, the oldest first", Args: exactArgs(1),
		Example: "  strake snapshot ls train\n  strake snapshot ls train --after 120 --most 100 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "list snapshots", args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.listSnapshots(ctx, cell, args[0], after, most, false)
			})
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "go on after the snapshot with this id")
	c.Flags().IntVar(&most, "most", 0, "at most so many (default: all)")
	return c
}

// listSnapshots prints a volume's snapshots, or its tags alone.
func (a *app) listSnapshots(ctx context.Context, cell *client.Cell, volume string, after uint64, most int, tags bool) error {
	var all []client.SnapshotInfo
	next := after
	for {
		page, more, err := cell.Snapshots(ctx, volume, next, most, tags)
		if err != nil {
			return err
		}
		all, next = append(all, page...), more
		if more == 0 || most > 0 && len(all) >= most {
			break
		}
	}
	return a.print(map[string]any{"snapshots": orEmpty(all), "next": next}, func(w io.Writer) { snapshotTable(w, volume, all, tags) })
}

func snapshotTable(w io.Writer, volume string, list []client.SnapshotInfo, tags bool) {
	if len(list) == 0 {
		what := "snapshot"
		if tags {
			what = "tag"
		}
		fmt.Fprintf(w, "no %ss; create one: strake %s create %s@NAME\n", what, what, volume)
		return
	}
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{strconv.FormatUint(s.ID, 10), s.Name, s.Kind, sizeText(uint64(s.Size)), s.CreatedAt.Format("2006-01-02 15:04:05"), readiness(s), strings.Join(s.Holds, ",")})
	}
	table(w, []string{"ID", "NAME", "KIND", "SIZE", "CREATED (UTC)", "DIGEST", "HELD BY"}, rows)
}

// readiness is a tag's digest, shortened, or that it is being computed.
func readiness(s client.SnapshotInfo) string {
	switch {
	case s.Kind != "tag":
		return ""
	case !s.Ready:
		return "not ready"
	}
	return s.Digest[:12]
}

func (a *app) snapshotShow() *cobra.Command {
	return &cobra.Command{
		Use: "show VOLUME@NAME", Short: "show one snapshot, and what removing it would free", Args: exactArgs(1),
		Example: "  strake snapshot show train@monday",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "show snapshot", args, func(ctx context.Context, cell *client.Cell) error {
				return a.showSnapshot(ctx, cell, args[0])
			})
		},
	}
}

func (a *app) showSnapshot(ctx context.Context, cell *client.Cell, name string) error {
	s, err := cell.Snapshot(ctx, name)
	if err != nil {
		return err
	}
	return a.print(s, func(w io.Writer) {
		pairs(w, [][2]string{
			{"name", s.Name}, {"id", strconv.FormatUint(s.ID, 10)}, {"kind", s.Kind},
			{"size", fmt.Sprintf("%s (%d bytes)", sizeText(uint64(s.Size)), s.Size)},
			{"created", s.CreatedAt.Format("2006-01-02 15:04:05 UTC")},
			{"digest", s.Digest}, {"held by", strings.Join(s.Holds, ", ")}, {"clones", strings.Join(s.Clones, ", ")},
			{"removal frees", freesText(&s)},
		})
	})
}

// freesText tells what the removal of a snapshot gives back, or what must go first.
func freesText(s *client.SnapshotInfo) string {
	switch {
	case len(s.Clones) > 0:
		return "nothing while clones stand on it: " + strings.Join(s.Clones, ", ")
	case s.Open:
		return "nothing while somebody has it open"
	case s.CleanableBytes == 0:
		return sizeText(s.FreesBytes) + ", parity included"
	}
	return fmt.Sprintf("%s, and about %s more by cleaning, parity included", sizeText(s.FreesBytes), sizeText(s.CleanableBytes))
}

func (a *app) snapshotRemove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "rm VOLUME@NAME", Short: "remove a snapshot or a tag", Args: exactArgs(1),
		Long: `Remove a snapshot or a tag; its space comes back in the background. Clones of it and
readers that have it open go on; the space they need stays until they are gone.`,
		Example: "  strake snapshot rm train@monday --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "remove snapshot", args, func(ctx context.Context, cell *client.Cell) error {
				s, err := cell.Snapshot(ctx, args[0])
				if err != nil {
					return err
				}
				if !yes {
					return errs.New(errs.InvalidArgument, "remove snapshot "+s.Name, "what the volume was on %s would be lost; that frees %s",
						s.CreatedAt.Format("2006-01-02 15:04:05 UTC"), freesText(&s)).WithHint("add --yes to remove it")
				}
				if err := cell.RemoveSnapshot(ctx, args[0]); err != nil {
					return err
				}
				return a.print(map[string]any{"removed": s.Name, "frees_bytes": s.FreesBytes}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", s.Name) })
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) snapshotRollback() *cobra.Command {
	var force, yes bool
	c := &cobra.Command{
		Use: "rollback VOLUME@NAME", Short: "make a volume what a snapshot of it is", Args: exactArgs(1),
		Long: `Make a volume what a snapshot of it is, at once and whatever its size. What the volume
was is kept as an automatic snapshot; rolling back to that one takes the rollback back.
It is refused while somebody writes the volume, unless --force shuts the writer out.`,
		Example: "  strake snapshot rollback model@step-1000 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			op := "roll back to " + args[0]
			return a.withSnapshots(cmd.Context(), op, args, func(ctx context.Context, cell *client.Cell) error {
				if !yes {
					return errs.New(errs.InvalidArgument, op, "the volume would lose what was written since; it would be kept as a snapshot").WithHint("add --yes to roll back")
				}
				v, kept, err := cell.RollbackVolume(ctx, args[0], force)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"volume": v, "kept": kept}, func(w io.Writer) {
					fmt.Fprintf(w, "%s is what %s is\n\n", v.Name, args[0])
					pairs(w, [][2]string{{"what it was:", kept.Name}})
				})
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "shut out whoever writes the volume")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) volumeClone() *cobra.Command {
	return &cobra.Command{
		Use: "clone VOLUME@NAME NEW", Short: "make a volume that begins as a snapshot", Args: exactArgs(2),
		Long: `Make a volume that begins as a snapshot. It takes no space until it is written, and is
writable at once. What it shares with the snapshot stays until the clone is
removed or flattened.`,
		Example: "  strake snapshot create base@v1\n  strake volume clone base@v1 experiment",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "clone", args[:1], func(ctx context.Context, cell *client.Cell) error {
				v, err := cell.CloneVolume(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "created %s, a clone of %s\n", v.Name, args[0]) })
			})
		},
	}
}
