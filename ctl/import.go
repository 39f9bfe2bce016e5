package ctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	Complete bool    `json:"complete"` // false: it was told to stop before the source ended
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
	offset, flushEvery, skip size
	force                    bool
}

func (a *app) volumeImport() *cobra.Command {
	o := importOptions{flushEvery: 64 << 20}
	c := &cobra.Command{
		Use: "import NAME SOURCE", Short: "copy a file, a directory (as a tar stream) or standard input into a volume", Args: exactArgs(2),
		Long: `Copy a file, a directory (as a tar stream) or standard input (-) into a volume.
With -o json, a line {"flushed_bytes":N} tells after each flush how much is durable.

SIGTERM and Ctrl-C stop it in good order: what was read until then is made durable,
the volume is let go, and it says how to go on (--skip). The exit code is 0 after
SIGTERM, with "complete": false in the JSON result, and 1 after Ctrl-C. A second
signal ends it at once.`,
		Example: "  strake volume import train dataset.tar\n  strake volume import train /data/imagenet\n  zcat x.gz | strake volume import train -\n" +
			"  strake volume import train dataset.tar --skip 64MiB",
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
				return a.importInto(ctx, vol, src, o, args)
			})
		},
	}
	c.Flags().Var(&o.offset, "offset", "where in the volume the source begins")
	c.Flags().Var(&o.skip, "skip", "go on with an import that stopped: leave out so many bytes of the source, which are in the volume already")
	c.Flags().Var(&o.flushEvery, "flush-every", "make what was written durable after each such amount, at least 4MiB")
	c.Flags().BoolVar(&o.force, "force", false, "take the volume over from a live writer, which is shut out")
	return c
}

// importInto copies the source into the volume, closes it, and tells the outcome:
// complete, stopped by a signal, or failed; in each case how much is durable.
func (a *app) importInto(ctx context.Context, vol *client.Volume, src source, o importOptions, args []string) error {
	work, cancel := outlasting(ctx)
	defer cancel()
	r, err := a.importFrom(ctx, work, vol, src, o)
	if closeErr := vol.CloseContext(work); err == nil || errors.As(err, new(stopped)) && closeErr != nil {
		err = closeErr
	}
	switch {
	case err == nil:
		return a.imported(r)
	case terminated(ctx) && errors.As(err, new(stopped)):
		return a.importStopped(r, src, o, args)
	}
	return importFailed(err, r, src, o, args)
}

// importStopped prints what an orderly stop leaves.
func (a *app) importStopped(r copied, src source, o importOptions, args []string) error {
	if a.json() {
		return json.NewEncoder(a.out).Encode(r)
	}
	fmt.Fprintf(a.out, "stopped: %d bytes (%s) were imported and are durable\n\ngo on:  %s\n", r.Flushed, sizeText(uint64(r.Flushed)), goOn(r, src, o, args))
	return nil
}

// importFailed adds to an error how much is durable and how to go on.
func importFailed(err error, r copied, src source, o importOptions, args []string) error {
	kind, hint := errs.KindOf(err), "then go on: "+goOn(r, src, o, args)
	if errors.As(err, new(stopped)) {
		kind, hint = errs.Canceled, goOn(r, src, o, args)
	}
	if cause := errs.HintOf(err); cause != "" {
		hint = cause + "; " + hint
	}
	e := errs.As(err, kind, "import into %s", args[0]).(*errs.Error).WithHint("%s", hint)
	e.Message = fmt.Sprintf("%d bytes are durable, no more", r.Flushed)
	return e
}

// goOn is the command that goes on where an import ended. A directory may have
// changed meanwhile, and then its stream has other bytes.
func goOn(r copied, src source, o importOptions, args []string) string {
	command := fmt.Sprintf("strake volume import %s %s", args[0], args[1])
	if o.offset > 0 {
		command += " --offset " + o.offset.String()
	}
	if skip := size(r.Flushed) + o.skip; skip > 0 && !src.packed {
		command += fmt.Sprintf(" --skip %d", skip)
	}
	return command
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

// importFrom copies a stream into a volume until it ends, or ctx, which gives its
// cause: then what was read is still made durable, as long as work lasts. The
// result tells how much is durable, whatever the error.
func (a *app) importFrom(ctx, work context.Context, vol *client.Volume, src source, o importOptions) (copied, error) {
	room := vol.Size() - int64(o.offset)
	if need := max(src.atLeast, int64(o.skip)); room < need {
		return copied{}, doesNotFit(vol, int64(o.offset)+need)
	}
	bar := a.newProgress("importing", src.atLeast)
	defer bar.end()
	begun, sum := time.Now(), sha256.New()
	c := newCopier(vol, int64(o.offset+o.skip), max(int64(o.flushEvery), copyChunk), a.flushed)
	in := newPull(src)
	defer in.close()
	err := c.from(ctx, work, in, int64(o.skip), func(p []byte) {
		sum.Write(p)
		bar.add(int64(len(p)))
	})
	n := c.durable.Load()
	return copied{Volume: vol.Name(), Bytes: n, Flushed: n, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Seconds: time.Since(begun).Seconds(), Complete: err == nil}, err
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
