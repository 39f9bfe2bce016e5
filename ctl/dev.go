package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"strake/chunkd"
	"strake/client"
	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta"
)

const (
	maxDevServers = 32
	// devReady bounds the time until a cell has formed and all its servers are up.
	devReady = 60 * time.Second
)

// devOptions describe a cell in one process.
type devOptions struct {
	dir     string
	keep    bool
	chunkds int
	listen  string
	verbose bool
}

func (a *app) devCommand() *cobra.Command {
	var o devOptions
	c := &cobra.Command{
		Use: "dev", Short: "run a whole cell in this process, to try things out", Args: exactArgs(0),
		Long: `Run a whole cell in this process: one metadata server and six chunk servers, which give
4+2 volumes by default. It listens on loopback and stops at Ctrl-C. Its data goes with it
unless --keep or --dir is given; the same --dir brings it back.`,
		Example: "  strake dev\n  strake dev --dir /var/tmp/cell --chunkds 4\n  strake dev --listen 127.0.0.1:7500",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.chunkds < 2 || o.chunkds > maxDevServers {
				return usagef("%d chunk servers: 2 to %d are possible", o.chunkds, maxDevServers)
			}
			return a.dev(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", "", "where the cell's data lives (default: a temporary directory, removed at the end)")
	f.BoolVar(&o.keep, "keep", false, "keep the temporary directory")
	f.IntVar(&o.chunkds, "chunkds", 6, "number of chunk servers")
	f.StringVar(&o.listen, "listen", defaultCell, "address of the metadata server; loopback only")
	f.BoolVar(&o.verbose, "verbose", false, "log what the servers do")
	return a.profiled(c)
}

// dev runs a cell until ctx ends or its metadata server can't go on.
func (a *app) dev(ctx context.Context, o devOptions) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "strake-dev-"); err != nil {
			return errs.As(err, errs.Unavailable, "make a directory for the cell")
		}
		if !o.keep {
			defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
		}
	}
	cell, err := startDev(ctx, o, a.devLogger(o.verbose), a.tell)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it started
		}
		return err
	}
	err = a.print(map[string]any{"cell": cell.address, "dir": o.dir, "chunk_servers": o.chunkds},
		func(w io.Writer) { devHelp(w, o, cell.address) })
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-cell.meta.Fatal():
		}
	}
	return errors.Join(err, cell.stop())
}

// devCell is a running cell.
type devCell struct {
	address string
	meta    *meta.Server
	chunkds []*chunkd.Server
	janitor *client.Janitor
}

// startDev starts a cell and tells how far it is; it is up when all chunk servers
// are registered. Their devices lie on one disk, of which each has its share.
func startDev(ctx context.Context, o devOptions, log *slog.Logger, tell func(format string, args ...any)) (*devCell, error) {
	devices, err := devDevices(o)
	if err != nil {
		return nil, err
	}
	tell("starting a metadata server at %s, data in %s", o.listen, o.dir)
	m, err := meta.Start(ctx, meta.Config{Listen: o.listen, Dir: filepath.Join(o.dir, "meta"), Logger: log, Version: Version})
	if err != nil {
		return nil, err
	}
	d := &devCell{meta: m, address: m.Addr().String(), chunkds: make([]*chunkd.Server, o.chunkds)}
	d.janitor = client.NewJanitor(client.Config{Addresses: d.address, Logger: log})
	ready, cancel := context.WithTimeout(ctx, devReady)
	defer cancel()
	group, ready := errgroup.WithContext(ready)
	tell("starting %d chunk servers", o.chunkds)
	var mu sync.Mutex
	up := 0 // guarded by mu
	for i, dir := range devices {
		cfg := chunkd.Config{Cell: d.address, Listen: "127.0.0.1:0", Control: "127.0.0.1:0",
			Domain: fmt.Sprintf("dev/dev/server-%d", i+1), Devices: []string{dir}, Recoverer: d.janitor, Logger: log, Version: Version, FS: sharedBy(o.chunkds)}
		group.Go(func() (err error) {
			d.chunkds[i], err = chunkd.Start(ready, cfg)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				up++
				tell("%d of %d chunk servers are up", up, o.chunkds)
			}
			return errs.Wrap(err, "chunk server %d", i+1)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// sharedBy opens devices that lie on one disk.
func sharedBy(devices int) func(dir string) (vfs.FS, error) {
	return func(dir string) (vfs.FS, error) {
		below, err := vfs.NewOS(dir)
		if err != nil {
			return nil, err
		}
		return vfs.NewShare(below, devices), nil
	}
}

// tell writes a line of progress to stderr, unless the output is for machines.
func (a *app) tell(format string, args ...any) {
	if !a.json() {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// stop stops everything, the metadata server last.
func (d *devCell) stop() error {
	var group errgroup.Group
	for _, s := range d.chunkds {
		if s != nil {
			group.Go(s.Close)
		}
	}
	return errors.Join(group.Wait(), d.janitor.Close(), d.meta.Close())
}

// devDevices makes a directory for each chunk server.
func devDevices(o devOptions) (list []string, err error) {
	for i := range o.chunkds {
		dir := filepath.Join(o.dir, fmt.Sprintf("chunkd-%d", i+1))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errs.As(err, errs.Unavailable, "make a directory for a chunk server")
		}
		list = append(list, dir)
	}
	return list, nil
}

// devLogger logs warnings alone unless everything is asked for.
func (a *app) devLogger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if a.json() {
		return slog.New(slog.NewJSONHandler(a.err, options))
	}
	return slog.New(slog.NewTextHandler(a.err, options))
}

// devHelp says what to try.
func devHelp(w io.Writer, o devOptions, address string) {
	cell := ""
	if address != defaultCell {
		cell = " --cell " + address
	}
	fmt.Fprintf(w, "the cell is up at %s: a metadata server and %d chunk servers, data in %s\n\ntry, in another terminal:\n", address, o.chunkds, o.dir)
	for _, line := range []string{
		"strake%s volume create demo --size 1GiB",
		"tar c /usr/include | strake%s volume import demo -",
		"strake%s volume export demo - | tar t | head",
		"strake%s status",
	} {
		fmt.Fprintf(w, "  "+line+"\n", cell)
	}
	fmt.Fprintf(w, "\nCtrl-C stops it\n")
}
