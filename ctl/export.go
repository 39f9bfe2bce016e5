package ctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

// exportOptions say what is copied out.
type exportOptions struct {
	offset, bytes size
	all           bool // to the volume's end
	force         bool
}

func (a *app) volumeExport() *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use: "export NAME FILE", Short: "copy a volume out, to a file or standard output (-)", Args: exactArgs(2),
		Long: `Copy a volume, or a range of it, to a file, a device or standard output (-).
A file appears under its name when it is complete. What was never written becomes holes in it.`,
		Example: "  strake volume export train train.img\n  strake volume export train - --bytes 1GiB | tar x",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.all = !cmd.Flags().Changed("bytes")
			return a.withVolume(cmd.Context(), "export", args[0], func(ctx context.Context, cell *client.Cell) error {
				vol, err := cell.Open(ctx, args[0], client.OpenOptions{})
				if err != nil {
					return err
				}
				defer vol.Close()
				r, err := a.export(ctx, vol, args[1], o)
				if err != nil {
					return errs.Wrap(err, "export %s", args[0])
				}
				return a.exported(r, args[1])
			})
		},
	}
	c.Flags().Var(&o.offset, "offset", "where in the volume to begin")
	c.Flags().Var(&o.bytes, "bytes", "how much (default: to the volume's end)")
	c.Flags().BoolVar(&o.force, "force", false, "overwrite an existing file")
	return c
}

// exported prints the result; on stderr when stdout took the data.
func (a *app) exported(r copied, path string) error {
	if path != "-" {
		return a.print(r, func(w io.Writer) { r.text(w, "exported") })
	}
	if !a.json() {
		r.text(a.err, "exported")
	}
	return nil
}

// export copies a range of a volume to a file.
func (a *app) export(ctx context.Context, vol *client.Volume, path string, o exportOptions) (copied, error) {
	at, n := int64(o.offset), int64(o.bytes)
	if o.all {
		n = max(0, vol.Size()-at)
	}
	if at > vol.Size() || n > vol.Size()-at {
		return copied{}, errs.New(errs.OutOfRange, "", "%d bytes at %d are past the volume's end at %d", n, at, vol.Size()).
			WithHint("strake volume show %s", vol.Name())
	}
	out, err := openTarget(path, a.out, o.force)
	if err != nil {
		return copied{}, err
	}
	bar := a.newProgress("exporting", n)
	begun, sum := time.Now(), sha256.New()
	err = readAhead(ctx, vol, at, n, func(p []byte) error {
		sum.Write(p)
		bar.add(int64(len(p)))
		_, err := out.Write(p)
		return errs.As(err, errs.Unavailable, "write %s", path)
	})
	bar.end()
	if err == nil {
		err = errs.As(out.Commit(), errs.Unavailable, "write %s", path)
	}
	if err != nil {
		out.Abort()
	}
	return copied{Volume: vol.Name(), Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Seconds: time.Since(begun).Seconds(), Degraded: vol.Stats().DegradedReads, Complete: err == nil}, err
}
