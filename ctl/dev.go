package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"strake/chunkd"
	"strake/client"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/meta"
)

const (
	maxDevServers = 32
	// devReady bounds the wait until a cell has formed and all its servers are up.
	devReady = 30 * time.Second
	devPoll  = 50 * time.Millisecond
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
	return c
}

// dev runs a cell until ctx ends or one of its servers can't go on.
func (a *app) dev(ctx context.Context, o devOptions) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "strake-dev-"); err != nil {
			return errs.As(err, errs.Unavailable, "make a directory for the cell")
		}
		if !o.keep {
			defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
		}
	}
	cell, err := a.startDev(ctx, o)
	if err != nil {
		return err
	}
	if err := a.devUp(cell.ctx, o, cell.address); err != nil {
		return errors.Join(cell.stop(), err)
	}
	return cell.wait()
}

// devCell is a running cell. Its chunk servers run until ctx ends, which the
// first failure of any server does.
type devCell struct {
	ctx     context.Context
	cancel  context.CancelFunc
	address string
	meta    *meta.Server
	servers *errgroup.Group
	janitor *client.Janitor
}

func (a *app) startDev(ctx context.Context, o devOptions) (*devCell, error) {
	log := a.devLogger(o.verbose)
	m, err := meta.Start(ctx, meta.Config{Listen: o.listen, Dir: filepath.Join(o.dir, "meta"), Logger: log, Version: Version})
	if err != nil {
		return nil, err
	}
	d := &devCell{meta: m, address: m.Addr().String()}
	ctx, d.cancel = context.WithCancel(ctx)
	d.servers, d.ctx = errgroup.WithContext(ctx)
	d.janitor = client.NewJanitor(client.Config{Addresses: d.address, Logger: log})
	for i := range o.chunkds {
		cfg := chunkd.Config{Cell: d.address, Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Policy: tls.Policy{},
			Domain: fmt.Sprintf("dev/dev/server-%d", i+1), Devices: []string{filepath.Join(o.dir, fmt.Sprintf("chunkd-%d", i+1))},
			Recoverer: d.janitor, Logger: log, Version: Version}
		d.servers.Go(func() error { return errs.Wrap(chunkd.Run(d.ctx, cfg), "chunk server %d", i+1) })
	}
	d.servers.Go(d.watchMeta)
	return d, nil
}

// watchMeta ends the cell when its metadata server can't go on.
func (d *devCell) watchMeta() error {
	select {
	case <-d.ctx.Done():
		return nil
	case err := <-d.meta.Fatal():
		return errs.Wrap(err, "metadata server")
	}
}

// wait waits for the end and stops everything, the metadata server last.
func (d *devCell) wait() error {
	<-d.ctx.Done()
	return d.stop()
}

func (d *devCell) stop() error {
	d.cancel()
	err := d.servers.Wait()
	d.janitor.Close()
	return errors.Join(err, d.meta.Close())
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

// devUp waits until all servers are up and says what to try.
func (a *app) devUp(ctx context.Context, o devOptions, address string) error {
	if err := waitUp(ctx, address, o.chunkds); err != nil {
		if ctx.Err() != nil {
			return nil // stopped, or a server's own error tells more
		}
		return err
	}
	return a.print(map[string]any{"cell": address, "dir": o.dir, "chunk_servers": o.chunkds}, func(w io.Writer) { devHelp(w, o, address) })
}

// waitUp waits until a cell has so many servers up.
func waitUp(ctx context.Context, address string, servers int) error {
	ctx, cancel := context.WithTimeout(ctx, devReady)
	defer cancel()
	cell, err := client.Dial(ctx, client.Config{Addresses: address})
	if err != nil {
		return err
	}
	defer cell.Close()
	for {
		status, err := cell.Status(ctx)
		if err == nil && int(status.ServersUp) >= servers {
			return nil
		}
		select {
		case <-ctx.Done():
			return errs.New(errs.Unavailable, "start the cell", "%d of %d chunk servers are up after %v", status.ServersUp, servers, devReady)
		case <-time.After(devPoll):
		}
	}
}

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
