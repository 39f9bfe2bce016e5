package ctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

// copied is the result of an import or export.
type copied struct {
	Volume   string  `json:"volume"`
	Bytes    int64   `json:"bytes"`
	SHA256   string  `json:"sha256"`
	Seconds  float64 `json:"seconds"`
	Flushed  int64   `json:"flushed_bytes,omitempty"`
	Degraded uint64  `json:"degraded_reads"`
}

func (c copied) text(w io.Writer, verb string) {
	fmt.Fprintf(w, "%s %d bytes (%s) in %.1f s, %s/s\nsha256 %s\n", verb, c.Bytes, sizeText(uint64(c.Bytes)), c.Seconds,
		sizeText(uint64(float64(c.Bytes)/max(c.Seconds, 1e-3))), c.SHA256)
	if c.Degraded > 0 {
		fmt.Fprintf(w, "reads decoded from other shards, as one was slow or away: %d\n", c.Degraded)
	}
}

// importOptions say where the bytes go.
type importOptions struct {
	offset, flushEvery size
	force              bool
}

func (a *app) volumeImport() *cobra.Command {
	o := importOptions{flushEvery: 64 << 20}
	c := &cobra.Command{
		Use: "import NAME SOURCE", Short: "copy a file, a directory (as a tar stream) or standard input into a volume", Args: exactArgs(2),
		Long: `Copy a file, a directory (as a tar stream) or standard input (-) into a volume.
With -o json, a line {"flushed_bytes":N} tells after each flush how much is durable.`,
		Example: "  strake volume import train dataset.tar\n  strake volume import train /data/imagenet\n  zcat x.gz | strake volume import train -",
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := openSource(args[1], cmd.InOrStdin())
			if err != nil {
				return errs.Wrap(err, "import into %s", args[0])
			}
			defer src.Close()
			return a.withVolume(cmd.Context(), "import", args[0], func(ctx context.Context, cell *client.Cell) error {
				vol, err := cell.Open(ctx, args[0], client.OpenOptions{Write: true, Force: o.force})
				if err != nil {
					return takeOverHint(err, args)
				}
				r, err := a.importFrom(ctx, vol, src, o)
				if closeErr := vol.Close(); err == nil {
					err = closeErr
				}
				if err != nil {
					return errs.Wrap(err, "import into %s", args[0])
				}
				return a.imported(r)
			})
		},
	}
	c.Flags().Var(&o.offset, "offset", "where in the volume to begin")
	c.Flags().Var(&o.flushEvery, "flush-every", "make what was written durable after each such amount, at least 4MiB")
	c.Flags().BoolVar(&o.force, "force", false, "take the volume over from a live writer, which is shut out")
	return c
}

// takeOverHint tells how to take a volume from another writer.
func takeOverHint(err error, args []string) error {
	if errs.KindOf(err) != errs.LeaseHeld || errs.HintOf(err) != "" {
		return err
	}
	return errs.Wrap(err, "import into %s", args[0]).(*errs.Error).
		WithHint("wait, or take it over: strake volume import %s %s --force", args[0], args[1])
}

// imported prints the result. As JSON it is one line, after the lines of the flushes.
func (a *app) imported(r copied) error {
	if a.json() {
		return json.NewEncoder(a.out).Encode(r)
	}
	r.text(a.out, "imported")
	return nil
}

// importFrom copies a stream into a volume.
func (a *app) importFrom(ctx context.Context, vol *client.Volume, src source, o importOptions) (copied, error) {
	at := int64(o.offset)
	if at > vol.Size() || src.atLeast > vol.Size()-at {
		return copied{}, doesNotFit(vol, at+src.atLeast)
	}
	bar := a.newProgress("importing", src.atLeast)
	defer bar.end()
	begun, sum := time.Now(), sha256.New()
	c := newCopier(vol, at, max(int64(o.flushEvery), copyChunk), a.flushed)
	defer c.wait()
	buf := make([]byte, copyChunk)
	for {
		n, readErr := io.ReadFull(src, buf)
		if n > 0 {
			sum.Write(buf[:n])
			if err := c.write(ctx, buf[:n]); err != nil {
				return copied{}, err
			}
			bar.add(int64(n))
		}
		if readErr == io.EOF || readErr == io.ErrUnexpectedEOF {
			break
		}
		if readErr != nil {
			return copied{}, readErr
		}
	}
	err := c.finish(ctx)
	return copied{Volume: vol.Name(), Bytes: c.at - at, Flushed: c.at - at, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Seconds: time.Since(begun).Seconds()}, err
}

// flushed tells a program how many bytes are durable.
func (a *app) flushed(n int64) error {
	if !a.json() {
		return nil
	}
	return json.NewEncoder(a.out).Encode(map[string]int64{"flushed_bytes": n})
}

// doesNotFit tells how large the volume must be at least.
func doesNotFit(vol *client.Volume, end int64) error {
	return errs.New(errs.OutOfRange, "", "the volume's %s are too small: at least %d bytes are needed", sizeText(uint64(vol.Size())), end).
		WithHint("strake volume resize %s --size %s", vol.Name(), nextSize(end))
}
