package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"strake/chunkd"
	"strake/client"
	"strake/e2e/disks"
	"strake/internal/vfs"
	"strake/meta"
)

// diskEnv makes this test binary a server whose disk is with a disks.Host at the
// address that it holds. The disk has the name of the server's directory.
const diskEnv = "STRAKE_E2E_DISKS"

// serveOn is the main of such a server; the arguments are the strake command's.
func serveOn(address string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	dial := func(dir string) (vfs.FS, error) { return disks.Dial(address, filepath.Base(dir)) }
	if len(args) < 2 || args[1] != "serve" {
		return fmt.Errorf("arguments %q", args)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	if args[0] == "meta" {
		cfg := meta.Config{Logger: log, Version: "test"}
		peers := flags.String("peers", "", "")
		flags.StringVar(&cfg.Dir, "dir", "", "")
		flags.StringVar(&cfg.Listen, "listen", "", "")
		err := flags.Parse(args[2:])
		if err == nil {
			cfg.Peers = strings.Split(*peers, ",")
			cfg.FS, err = dial(cfg.Dir)
		}
		if err != nil {
			return err
		}
		return meta.Run(ctx, cfg)
	}
	cfg := chunkd.Config{Logger: log, Version: "test", FS: dial, Devices: []string{""}}
	flags.StringVar(&cfg.Cell, "cell", "", "")
	flags.StringVar(&cfg.Listen, "listen", "", "")
	flags.StringVar(&cfg.Control, "control", "", "")
	flags.StringVar(&cfg.Domain, "domain", "", "")
	flags.StringVar(&cfg.Devices[0], "device", "", "")
	flags.BoolVar(&cfg.Calibrate, "calibrate", true, "")
	if err := flags.Parse(args[2:]); err != nil {
		return err
	}
	recoverer := client.NewJanitor(client.Config{Addresses: cfg.Cell, Logger: log})
	defer recoverer.Close()
	cfg.Recoverer = recoverer
	return chunkd.Run(ctx, cfg)
}
