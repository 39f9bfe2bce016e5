package meta

import (
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/meta/replica"
	"strake/meta/server"
	"strake/meta/state"
)

// formable tells whether so many servers may form a cell: of an even number as many
// may be lost as of one less, and of more than five each adds a write and little else.
func formable(n int) bool { return n == 1 || n == 3 || n == 5 }

// Config says how a metadata server runs.
type Config struct {
	// Listen is the HOST:PORT for everything: the API and raft.
	Listen string
	// Advertise is the HOST:PORT by which the others reach this server, its name
	// for ever; empty: what it listens on.
	Advertise string
	// Dir is the server's own directory; it is made when it is missing.
	Dir string
	// Peers are the advertised addresses of the servers that form the cell, the
	// same list on each of them; empty: this one alone. Once the cell has
	// formed, its own record of its members counts.
	Peers []string
	// Directory is an etcd URL (see discovery.Address): the server is listed there,
	// and where no Peers are given, the first Bootstrap servers that are listed form
	// the cell. Empty: no etcd.
	Directory string
	Bootstrap int

	// Metrics is the HOST:PORT of the Prometheus endpoint; empty: none.
	Metrics string

	Policy      tls.Policy
	Logger      *slog.Logger
	Version     string        // of the program, for people
	ShardLength int64         // of a cell that forms, in bytes; 0: layout.DefaultShardLength
	SessionTTL  time.Duration // 0: 6 s
	// RebuildAfter is how long a chunk server may be gone before its shards are
	// made again elsewhere; 0: 10 min.
	RebuildAfter time.Duration

	// FS stands in for Dir where it is set; Timing and Raft shorten times. For tests.
	FS     vfs.FS
	Timing server.Timing
	Raft   replica.Timing
	// reads is the version of the state that this server says it reads, since that of a
	// command; nil: what state says. For tests.
	reads func() uint32
	since func(state.Command) uint32
}

// check refuses what can't work and fills in what was left out. bound is the
// address that the server listens on.
func (c Config) check(bound net.Addr) (Config, error) {
	if c.Advertise == "" {
		c.Advertise = c.Listen // the name as it was given, not what it resolved to
		if host, port, err := net.SplitHostPort(c.Listen); err != nil || host == "" || port == "0" {
			c.Advertise = bound.String()
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Directory != "" && len(c.Peers) == 0 && !formable(c.Bootstrap) {
		return c, errs.New(errs.InvalidArgument, "start", "%d servers form the cell, want 1, 3 or 5", c.Bootstrap).
			WithHint("give --bootstrap 3, or the servers themselves with --peers")
	}
	if c.Directory == "" && len(c.Peers) == 0 {
		c.Peers = []string{c.Advertise}
	}
	c.Peers = slices.Clone(c.Peers)
	slices.Sort(c.Peers)
	if len(slices.Compact(slices.Clone(c.Peers))) != len(c.Peers) {
		return c, errs.New(errs.InvalidArgument, "start", "a peer stands twice in the list").WithHint("name each server once in --peers")
	}
	if n := len(c.Peers); n > 0 && !formable(n) {
		return c, errs.New(errs.InvalidArgument, "start", "%d peers, want 1, 3 or 5", n).
			WithHint("leave servers out of --peers, and add them later: strake meta add ADDRESS")
	}
	for _, a := range append([]string{c.Advertise}, c.Peers...) {
		host, port, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || port == "" || port == "0" || host == "" || ip != nil && ip.IsUnspecified() {
			return c, errs.New(errs.InvalidArgument, "start", "%q is not an address that others can reach", a).
				WithHint("give HOST:PORT with --advertise")
		}
	}
	if c.ShardLength == 0 {
		c.ShardLength = layout.DefaultShardLength
	}
	if c.ShardLength < layout.FirstShardLength || c.ShardLength > layout.MaxShardLength || c.ShardLength&(c.ShardLength-1) != 0 {
		return c, errs.New(errs.InvalidArgument, "start", "shard length %d: a power of two from %d to %d is wanted",
			c.ShardLength, layout.FirstShardLength, layout.MaxShardLength)
	}
	if c.reads == nil {
		c.reads = func() uint32 { return state.Version }
	}
	if c.SessionTTL != 0 {
		c.Timing.SessionTTL = c.SessionTTL
	}
	if c.RebuildAfter != 0 {
		c.Timing.RebuildAfter = c.RebuildAfter
	}
	return c, nil
}

// open gives the file system of the server's directory.
func (c Config) open() (vfs.FS, error) {
	if c.FS != nil {
		return c.FS, nil
	}
	if c.Dir == "" {
		return nil, errs.New(errs.InvalidArgument, "start", "no directory").WithHint("give --dir DIRECTORY")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, errs.As(err, errs.InvalidArgument, "make the directory")
	}
	fs, err := vfs.NewOS(c.Dir)
	return fs, errs.As(err, errs.InvalidArgument, "open the directory")
}
