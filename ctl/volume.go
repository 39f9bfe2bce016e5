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

func (a *app) volumeCommand() *cobra.Command {
	return group("volume", "create, list, change and fill volumes",
		a.volumeCreate(), a.volumeList(), a.volumeShow(), a.volumeResize(), a.volumeRemove(), a.volumeUndelete(),
		a.volumeImport(), a.volumeExport(), a.volumeClone(), a.volumeFlatten(), a.volumeRecover())
}

func (a *app) volumeCreate() *cobra.Command {
	var bytes size
	var class string
	var k, m int
	c := &cobra.Command{
		Use: "create NAME --size SIZE", Short: "create a volume", Args: exactArgs(1),
		Example: "  strake volume create train --size 10TiB\n  strake volume create ckpt --size 2TiB --k 8 --m 3 --class checkpoint",
		RunE: func(cmd *cobra.Command, args []string) error {
			op := "create volume " + args[0]
			geometryGiven := cmd.Flags().Changed("k") || cmd.Flags().Changed("m")
			if geometryGiven && !(cmd.Flags().Changed("k") && cmd.Flags().Changed("m")) && (m != 0 || !cmd.Flags().Changed("m")) {
				return usagef("a geometry is --k and --m together, e.g. --k 4 --m 2")
			}
			if err := checkVolume(op, int64(bytes), k, m, geometryGiven); err != nil {
				return err
			}
			options := client.VolumeOptions{Size: int64(bytes), K: k, M: m, Class: or(class, a.config.Class)}
			return a.withVolume(cmd.Context(), op, args[0], func(ctx context.Context, cell *client.Cell) error {
				v, err := cell.CreateVolume(ctx, args[0], options)
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { created(w, v) })
			})
		},
	}
	c.Flags().Var(&bytes, "size", "size, e.g. 10GiB; a multiple of 4 KiB")
	c.Flags().IntVar(&k, "k", 0, "data shards, 1 to 16 (default: the widest of 4+2, 2+2, 2+1, 1+1 that the cell holds)")
	c.Flags().IntVar(&m, "m", 0, "parity shards, 1 to 4: how many servers may be lost")
	c.Flags().StringVar(&class, "class", "", "default class: inference, training, checkpoint or background")
	_ = c.MarkFlagRequired("size")
	return c
}

// created tells of a new volume and what to do next.
func created(w io.Writer, v client.VolumeInfo) {
	fmt.Fprintf(w, "created %s: %s, %d+%d, class %s\n\n", v.Name, sizeText(uint64(v.Size)), v.K, v.M, v.Class)
	pairs(w, [][2]string{
		{"put data in:", "tar c DIR | strake volume import " + v.Name + " -"},
		{"look at it:", "strake volume show " + v.Name},
	})
}

// checkVolume refuses sizes and geometries that no cell can hold.
func checkVolume(op string, bytes int64, k, m int, geometryGiven bool) error {
	switch {
	case bytes < layout.MinVolumeBytes || bytes > layout.MaxVolumeBytes || bytes%layout.BlockSize != 0:
		return errs.New(errs.InvalidArgument, op, "a size of %d bytes", bytes).
			WithHint("a size is a multiple of 4 KiB, at least 4 KiB and at most 1 EiB: --size %s", nextSize(bytes))
	case !geometryGiven:
		return nil
	case m == 0:
		return errs.New(errs.InvalidArgument, op, "m = 0 is no parity: one lost server would lose data").
			WithHint("the smallest geometry is 1+1: --k 1 --m 1")
	case k < 1 || k > layout.MaxData || m < 1 || m > layout.MaxParity:
		return errs.New(errs.InvalidArgument, op, "geometry %d+%d", k, m).
			WithHint("k is 1 to %d and m is 1 to %d; the smallest geometry is 1+1", layout.MaxData, layout.MaxParity)
	}
	return nil
}

// nextSize is the nearest size that is allowed, as a flag's value.
func nextSize(bytes int64) string {
	s := size(min(max(layout.Blocks(min(bytes, layout.MaxVolumeBytes)).Bytes(), layout.MinVolumeBytes), layout.MaxVolumeBytes))
	return s.String()
}

// or gives the first of two texts that is not empty.
func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (a *app) volumeList() *cobra.Command {
	var tenant string
	var removed bool
	c := &cobra.Command{
		Use: "ls", Short: "list volumes", Args: exactArgs(0), Example: "  strake volume ls\n  strake volume ls --removed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.Volumes(ctx, tenant, removed)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"volumes": orEmpty(list)}, func(w io.Writer) { volumeTable(w, list, removed) })
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "only this tenant's")
	c.Flags().BoolVar(&removed, "removed", false, "list removed volumes that undelete can bring back")
	return c
}

func volumeTable(w io.Writer, list []client.VolumeInfo, removed bool) {
	switch {
	case len(list) == 0 && removed:
		fmt.Fprintln(w, "no removed volumes")
		return
	case len(list) == 0:
		fmt.Fprintln(w, "no volumes; create one: strake volume create NAME --size 10GiB")
		return
	}
	var rows [][]string
	for _, v := range list {
		if removed {
			rows = append(rows, []string{v.Name, strconv.FormatUint(v.ID, 10), sizeText(uint64(v.Size)), sizeText(v.StoredBytes), v.RemovedAt.Format("2006-01-02 15:04:05")})
			continue
		}
		rows = append(rows, []string{v.Name, sizeText(uint64(v.Size)), fmt.Sprintf("%d+%d", v.K, v.M), v.Class,
			v.State, liveColumn(v), sizeText(v.StoredBytes), v.Holder})
	}
	if removed {
		table(w, []string{"NAME", "ID", "SIZE", "STORED", "REMOVED (UTC)"}, rows)
		return
	}
	table(w, []string{"NAME", "SIZE", "GEOMETRY", "CLASS", "STATE", "LIVE", "STORED", "WRITER"}, rows)
}

func (a *app) volumeShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "show one volume", Args: exactArgs(1), Example: "  strake volume show train",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "show volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				if strings.Contains(args[0], "@") {
					return a.showSnapshot(ctx, cell, args[0])
				}
				v, err := cell.Volume(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { volumePairs(w, v) })
			})
		},
	}
}

func volumePairs(w io.Writer, v client.VolumeInfo) {
	pairs(w, [][2]string{
		{"name", v.Name}, {"id", strconv.FormatUint(v.ID, 10)},
		{"size", fmt.Sprintf("%s (%d bytes)", sizeText(uint64(v.Size)), v.Size)},
		{"geometry", fmt.Sprintf("%d+%d: up to %d of a segment's %d servers may be lost", v.K, v.M, v.M, v.K+v.M)},
		{"class", v.Class}, {"state", v.State}, {"undecided", v.Undecided}, {"blocked", v.Blocked}, {"writer", v.Holder},
		{"epoch", strconv.FormatUint(v.Epoch, 10)},
		{"segments", fmt.Sprintf("%d, of these %d unsealed", v.Segments, v.Unsealed)},
		{"live", liveText(v)},
		{"stored", sizeText(v.StoredBytes) + " in sealed segments, parity included"},
		{"garbage", garbageText(v)},
		{"snapshots", snapshotsText(v)}, {"clone of", originText(v)},
		{"reserved", sizeText(v.ReservedBytes) + " by unsealed segments"},
		{"map root", strconv.FormatUint(v.MapRoot, 10)},
	})
}

// liveText tells what is live, as far as the map was written.
func liveText(v client.VolumeInfo) string {
	if v.MapRoot == 0 {
		return "" // never counted
	}
	return sizeText(v.LiveBytes) + " of data as of the newest map root"
}

// liveColumn is what is live as a column of a table tells it.
func liveColumn(v client.VolumeInfo) string {
	if v.MapRoot == 0 {
		return "-"
	}
	return sizeText(v.LiveBytes)
}

func garbageText(v client.VolumeInfo) string {
	if v.MapRoot == 0 {
		return ""
	}
	return sizeText(v.GarbageBytes) + " of what is stored, snapshots' needs aside"
}

func originText(v client.VolumeInfo) string {
	switch {
	case v.Origin == "":
		return ""
	case v.MapRoot == 0:
		return v.Origin // what it shares was never counted
	case v.Flattening:
		return fmt.Sprintf("%s, being flattened: %s to copy", v.Origin, sizeText(v.Inherited))
	}
	return fmt.Sprintf("%s, of which it shares %s", v.Origin, sizeText(v.Inherited))
}

// snapshotsText tells how many snapshots a volume has, and what only they need.
func snapshotsText(v client.VolumeInfo) string {
	switch {
	case v.Snapshots == 0 && v.SnapshotBytes == 0:
		return ""
	case v.Snapshots == 0:
		return fmt.Sprintf("none but removed ones on which others stand, which alone need %s of what is stored", sizeText(v.SnapshotBytes))
	}
	return fmt.Sprintf("%d, which alone need %s of what is stored", v.Snapshots, sizeText(v.SnapshotBytes))
}
