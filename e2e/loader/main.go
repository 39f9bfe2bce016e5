// Command loader is the workload of the tests in containers: it writes a volume
// whose blocks tell on themselves, reads it at the same time, and checks what it
// holds after a crash. Package workload says what is checked.
//
//	loader write   --cell CELL --volume V --seed N --blocks N   until SIGTERM
//	loader check   ... --last N                                 the volume holds operations 1 to N and nothing else
//	loader crashed ... --flushed N --began N                    it holds a prefix that ends between the two
//	loader lock    --cell URL                                   etcd there wants certificate and password from now on
//	loader fight   --cell CELL --volume V --seed N --number N   until SIGTERM: see workload.Fighter
//
// What it does it tells on its standard output, in lines: those of workload.Write,
// and `open`, `slow WHAT MILLISECONDS` for each that took longer than half a
// second, `failed WHY`, `ended began N reads N slowest MILLISECONDS`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"strake/client"
	"strake/e2e/workload"
)

// Bounds of a workload.
const (
	mostBlocks = 64
	every      = 4 * time.Millisecond // at least, between two writes
	endWithin  = 80 * time.Second     // flush, check and close, once asked to end
	setWithin  = 2 * time.Minute      // find the cell, make and open the volume
)

type options struct {
	cell, volume         string
	seed, blocks         uint64
	last, flushed, began uint64
	number               int
}

func (o options) plan() workload.Plan {
	return workload.Plan{Volume: o.volume, Seed: o.seed, First: 1, Blocks: o.blocks, Most: mostBlocks, Every: every}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	verbs := map[string]func(context.Context, options) error{"write": write, "check": check, "crashed": crashed, "fight": fight, "lock": lock}
	if len(args) == 0 || verbs[args[0]] == nil {
		return fmt.Errorf("want write, check, crashed, fight or lock, got %q", args)
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&o.cell, "cell", "", "the cell")
	f.StringVar(&o.volume, "volume", "v", "the volume")
	f.Uint64Var(&o.seed, "seed", 1, "of the operations")
	f.Uint64Var(&o.blocks, "blocks", 4096, "of the volume")
	f.Uint64Var(&o.last, "last", 0, "operation that is there")
	f.Uint64Var(&o.flushed, "flushed", 0, "operations that were flushed")
	f.Uint64Var(&o.began, "began", 0, "operations that were begun")
	f.IntVar(&o.number, "number", 0, "of the fighter")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	return verbs[args[0]](ctx, o)
}

// dial connects to the cell, which may be hard to find for longer than a client waits
// by itself.
func dial(ctx context.Context, o options) (*client.Cell, error) {
	for {
		cell, err := client.Dial(ctx, client.Config{Addresses: o.cell, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if !errors.Is(err, client.ErrUnavailable) || ctx.Err() != nil {
			return cell, err
		}
	}
}

// open opens the volume; write makes it, or takes it over.
func open(ctx context.Context, o options, write bool) (*client.Cell, *client.Volume, error) {
	cell, err := dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	vol, err := cell.Open(ctx, o.volume, client.OpenOptions{Write: write, Force: write})
	if err != nil {
		cell.Close()
	}
	return cell, vol, err
}

// check compares a volume whose writer ended well, as a reader.
func check(ctx context.Context, o options) error {
	cell, vol, err := open(ctx, o, false)
	if err != nil {
		return err
	}
	defer cell.Close()
	h := workload.NewHistory(o.volume, o.blocks)
	h.Advance(o.plan(), o.last)
	return h.Check(vol)
}

// crashed takes a volume over whose writer is gone, compares it, and compares it
// again as a reader.
func crashed(ctx context.Context, o options) error {
	cell, vol, err := open(ctx, o, true)
	if err != nil {
		return err
	}
	defer cell.Close()
	h := workload.NewHistory(o.volume, o.blocks)
	if err := h.Crashed(vol, o.plan(), o.flushed, o.began); err != nil {
		return err
	}
	if err := vol.Close(); err != nil {
		return err
	}
	again, err := cell.Open(ctx, o.volume, client.OpenOptions{})
	if err != nil {
		return err
	}
	return h.Check(again)
}

// fight takes the volume from others, and loses it, until ctx ends.
func fight(ctx context.Context, o options) error {
	cell, err := made(o)
	if err != nil {
		return err
	}
	defer cell.Close()
	f := workload.Fighter{Cell: cell, Volume: o.volume, Number: o.number, Out: os.Stdout}
	return f.Fight(ctx, o.seed)
}

// made connects to the cell and makes the volume, unless it is there.
func made(o options) (*client.Cell, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setWithin)
	defer cancel()
	cell, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = cell.CreateVolume(ctx, o.volume, client.VolumeOptions{Size: int64(o.blocks) * workload.BlockSize})
	if err != nil && !errors.Is(err, client.ErrExists) {
		cell.Close()
		return nil, err
	}
	return cell, nil
}
