package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
	"strake/meta"
)

func (a *app) metaBackup() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "backup FILE", Short: "write a backup of the cell's metadata", Args: exactArgs(1),
		Long: `Write a backup of the cell's metadata, of one moment and with a checksum: volumes, where
their segments lie, leases. The volumes' data is not in it. - is standard output.`,
		Example: "  strake meta backup /backup/cell-2026-11-30",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				to, err := openTarget(args[0], a.out, force)
				if err != nil {
					return errs.Wrap(err, "back up the metadata")
				}
				defer to.Abort()
				n, err := cell.Backup(ctx, to)
				if err == nil {
					err = to.Commit()
				}
				if err != nil {
					return errs.Wrap(err, "back up the metadata")
				}
				if args[0] == "-" {
					return nil
				}
				return a.print(map[string]any{"file": args[0], "bytes": n}, func(w io.Writer) { fmt.Fprintf(w, "wrote %s: %s\n", args[0], sizeText(uint64(n))) })
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return c
}

func (a *app) metaRestore() *cobra.Command {
	var cfg meta.Config
	var yes bool
	c := &cobra.Command{
		Use: "restore FILE --dir DIR --advertise HOST:PORT", Short: "make a new metadata server of a backup, when all of them are lost", Args: exactArgs(1),
		Long: `Make the directory of a metadata server of a backup, when all metadata servers of a cell
are lost for ever. The directory must be new or empty, and no server of the cell may
run: those that the backup names, and --cell, are asked.

What happened after the backup is forgotten: volumes go back to about that time, and
what was moved or deleted since may be lost. Chunk servers keep what they have of the
time that the backup knows nothing of. Then start it, and add other servers:
  strake meta serve --dir DIR --listen HOST:PORT
  strake meta add ADDRESS`,
		Example: "  strake meta restore /backup/cell-2026-11-30 --dir /var/lib/strake/meta --advertise a:7400 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Logger = a.devLogger(false)
			about, err := meta.Restore(cmd.Context(), cfg, args[0], splitList(a.config.Cell), yes)
			if err != nil {
				return err
			}
			return a.print(about, func(w io.Writer) {
				fmt.Fprintf(w, "restored cell %016x as of log entry %d\n\nstart it:  strake meta serve --dir %s --listen %s\n", about.Cell, about.Applied, cfg.Dir, cfg.Advertise)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Dir, "dir", "", "the new server's directory")
	f.StringVar(&cfg.Advertise, "advertise", "", "address that others will reach it by, its name for ever")
	f.BoolVar(&yes, "yes", false, "do it")
	_ = c.MarkFlagRequired("dir")
	_ = c.MarkFlagRequired("advertise")
	return c
}
