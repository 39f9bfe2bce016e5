// Command demo shows strake's main job on one machine, in about a minute: a cell
// of separate processes takes in a real tree, gives it back bit for bit while two
// of its six chunk servers are dead and after an importer was killed, and says how
// fast it was. Any byte that differs makes it exit 1.
//
// With -run it starts the same cell and leaves it up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"strake/e2e/cluster"
)

// options are the command line.
type options struct {
	binary string
	dir    string
	source string
	keep   bool
	run    bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "strake", filepath.Join("bin", "strake"), "the strake command; built when it is not there")
	flag.StringVar(&o.dir, "dir", "", "where data and logs go (default: a temporary directory)")
	flag.StringVar(&o.source, "source", "", "the tree to import (default: the Go toolchain's own)")
	flag.BoolVar(&o.keep, "keep", false, "keep the temporary directory")
	flag.BoolVar(&o.run, "run", false, "only start the cell, and leave it up until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo starts a cell, runs the show or waits, and stops everything it started.
func demo(ctx context.Context, o options) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "strake-demo-"); err != nil {
			return err
		}
		if !o.keep {
			defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
		}
	}
	if o.binary, err = command(ctx, o); err != nil {
		return err
	}
	if o.source, err = source(ctx, o); err != nil {
		return err
	}
	say("starting one metadata server and six chunk servers as processes of their own")
	cell, err := cluster.Start(ctx, cluster.Options{Binary: o.binary, Dir: o.dir})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cell.Close())
		if err == nil {
			say("everything that was started is stopped")
		}
	}()
	fmt.Printf("    metadata at %s; data and logs in %s\n", cell.Cell, o.dir)
	if o.run {
		return stayUp(ctx, cell, o)
	}
	s := &show{cell: cell, options: o}
	err = s.perform(ctx)
	if ctx.Err() != nil {
		return errors.New("stopped before the end")
	}
	return err
}

// command gives the strake command, building it when it is not there.
func command(ctx context.Context, o options) (string, error) {
	if path, err := filepath.Abs(o.binary); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	say("building strake")
	return cluster.Build(ctx, o.dir)
}

// source gives the tree to import.
func source(ctx context.Context, o options) (string, error) {
	if o.source != "" {
		return o.source, nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find a tree to import (-source gives another): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// stayUp waits for Ctrl-C.
func stayUp(ctx context.Context, cell *cluster.Cluster, o options) error {
	fmt.Printf("\ntry, in another terminal:\n")
	for _, line := range []string{"volume create demo --size 1GiB", "volume import demo " + o.source, "volume export demo - | tar t | head", "status", "server ls"} {
		fmt.Printf("  %s --cell %s %s\n", o.binary, cell.Cell, line)
	}
	fmt.Printf("\nCtrl-C stops it\n")
	<-ctx.Done()
	fmt.Println()
	return nil
}

// say announces a step.
func say(format string, args ...any) { fmt.Printf("\n--> "+format+"\n", args...) }
