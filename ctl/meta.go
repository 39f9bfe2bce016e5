package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/discovery"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/meta"
)

// memberTimeout bounds the addition or removal of a metadata server: a new one
// copies the state first.
const memberTimeout = time.Minute

// minRebuildAfter is the least that --rebuild-after takes.
const minRebuildAfter = 10 * time.Second

func (a *app) metaCommand() *cobra.Command {
	return group("meta", "metadata servers", a.metaServe(), a.metaAdd(), a.metaRemove(), a.metaBackup(), a.metaRestore())
}

func (a *app) metaServe() *cobra.Command {
	var cfg meta.Config
	var peers string
	var insecure bool
	shardLength := size(64 << 20)
	c := &cobra.Command{
		Use: "serve --dir DIR", Short: "run a metadata server", Args: exactArgs(0),
		Long: `Run a metadata server. Give the same command on each of 1, 3 or 5 servers, with all of
them in --peers: the cell forms once, when all of them answer and are empty. A server
that comes later waits until it is added: strake meta add ADDRESS.

Where etcd is there, --cell etcd://HOST:PORT/CELL lists the server under the cell's name for
clients and chunk servers, and stands in for --peers: the first --bootstrap servers that are
listed form the cell.`,
		Example: "  strake meta serve --dir /var/lib/strake/meta\n" +
			"  strake meta serve --dir /var/lib/strake/meta --listen a:7400 --peers a:7400,b:7400,c:7400\n" +
			"  strake meta serve --dir /var/lib/strake/meta --listen a:7400 --cell etcd://e1,e2,e3/prod --bootstrap 3",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.RebuildAfter < minRebuildAfter {
				return errs.New(errs.InvalidArgument, "serve metadata", "rebuilds after %v: a server that restarts would be given up", cfg.RebuildAfter).
					WithHint("give --rebuild-after at least %v", minRebuildAfter)
			}
			cfg.ShardLength = int64(shardLength)
			cfg.Peers = splitList(peers)
			if discovery.IsURL(a.config.Cell) {
				cfg.Directory = a.config.Cell
			}
			cfg.Policy = tls.Policy{Insecure: insecure}
			cfg.Logger, cfg.Version = a.logger(), Version
			return meta.Run(cmd.Context(), cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Dir, "dir", "", "directory of the Raft log and snapshots, best on a device of its own")
	f.StringVar(&cfg.Listen, "listen", defaultCell, "address to listen on")
	f.StringVar(&cfg.Advertise, "advertise", "", "address that others reach it by, its name for ever (default: --listen)")
	f.StringVar(&cfg.Metrics, "metrics", "", "serve Prometheus metrics at HOST:PORT/metrics (default: not at all)")
	f.StringVar(&peers, "peers", "", "all metadata servers of the cell, this one included (default: this one alone)")
	f.IntVar(&cfg.Bootstrap, "bootstrap", 3, "how many servers form the cell that etcd lists, where no --peers are given")
	f.Var(&shardLength, "shard-length", "longest shard, 4MiB to 1GiB, a power of two; used when the cell forms")
	f.DurationVar(&cfg.RebuildAfter, "rebuild-after", 10*time.Minute, "how long a chunk server may be gone before its shards are made again; the same on each server")
	f.BoolVar(&insecure, tls.InsecureFlag, false, "listen beyond loopback without any security")
	_ = c.MarkFlagRequired("dir")
	return a.profiled(c)
}

func (a *app) metaAdd() *cobra.Command {
	return a.memberVerb("add ADDRESS", "add a metadata server that runs and is empty", "added",
		"  strake meta add d:7400", (*client.Cell).AddMember)
}

func (a *app) metaRemove() *cobra.Command {
	return a.memberVerb("rm ADDRESS", "remove a metadata server from the cell", "removed",
		"  strake meta rm b:7400", (*client.Cell).RemoveMember)
}

func (a *app) memberVerb(use, short, done, example string, do func(*client.Cell, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactArgs(1), Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				ctx, cancel := context.WithTimeout(ctx, memberTimeout)
				defer cancel()
				if err := do(cell, ctx, args[0]); err != nil {
					return err
				}
				return a.print(map[string]any{done: args[0]}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, args[0]) })
			})
		},
	}
}

// splitList splits a comma-separated list and drops empty parts.
func splitList(s string) []string {
	var list []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			list = append(list, p)
		}
	}
	return list
}
