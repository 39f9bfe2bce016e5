package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/internal/tls"
)

const (
	// Patience bounds every wait for a state. It judges no speed: a machine may be
	// busy, and what hangs hangs for longer.
	Patience    = 3 * time.Minute
	keepTimeout = 2 * time.Minute
	pollEvery   = 200 * time.Millisecond
	// startAtOnce bounds the containers that are started at the same time.
	startAtOnce = 4
	data        = "/var/lib/strake"
)

// Options describe a cell.
type Options struct {
	Images  Images
	Meta    int  // metadata servers, default 3
	Chunkds int  // chunk servers, default 8
	Etcd    bool // they find each other there; else by a list of addresses
	Secure  bool // etcd wants certificates and a password
	// Dirs are folders of the host that stand in for the volumes of some nodes.
	Dirs map[string]string
}

// Cell is a running cell.
type Cell struct {
	Metas, Chunkds []*Node
	Etcd           *Node      // nil: none
	Address        string     // as --cell takes it, inside the network
	Seed           uint64     // of Rand
	Rand           *rand.Rand // for choices of the test

	t       testing.TB // the one that waits now
	owner   testing.TB // the one that the cell ends with
	engine  *Engine
	opts    Options
	prefix  string
	keys    []string // options that mount what a Secure etcd asks for
	metas   string   // the metadata servers' addresses
	network string
	others  []*Node
	began   time.Time
	noting  sync.Mutex
	lines   []string // guarded by noting: the timeline
	nets    int
}

// Start starts a cell that ends with the test, and waits until all its servers
// are up. A test that failed shows seed, timeline and logs.
func (e *Engine) Start(t testing.TB, seed uint64, opts Options) *Cell {
	t.Helper()
	if opts.Meta == 0 {
		opts.Meta = 3
	}
	if opts.Chunkds == 0 {
		opts.Chunkds = 8
	}
	c := &Cell{t: t, owner: t, engine: e, opts: opts, began: time.Now(), Seed: seed, Rand: rand.New(rand.NewPCG(seed, 1)),
		prefix: fmt.Sprintf("%s-%d", e.prefix, e.cells.Add(1))}
	t.Cleanup(func() { c.end() })
	c.must(c.newNetwork(t.Context()))
	c.define()
	nodes := c.all()
	if opts.Secure {
		c.lockEtcd(t.Context())
		nodes = c.Servers()
	}
	var group errgroup.Group
	group.SetLimit(startAtOnce)
	for _, n := range nodes {
		group.Go(func() error { return n.run(t.Context()) })
	}
	c.must(group.Wait())
	c.Note("started %d metadata and %d chunk servers", len(c.Metas), len(c.Chunkds))
	c.WaitUp()
	return c
}

// Under makes a subtest the one that fails when a wait does.
func (c *Cell) Under(t testing.TB) { c.t = t }

// define says what each node is.
func (c *Cell) define() {
	var list []string
	for i := range c.opts.Meta {
		list = append(list, fmt.Sprintf("meta-%d:7400", i+1))
	}
	c.metas = strings.Join(list, ",")
	c.Address = c.metas
	if c.opts.Etcd {
		c.defineEtcd()
	}
	for i := range c.opts.Meta {
		name := fmt.Sprintf("meta-%d", i+1)
		args := []string{"meta", "serve", "--dir", data, "--listen", "0.0.0.0:7400", "--" + tls.InsecureFlag, "--advertise", name + ":7400"}
		if !c.opts.Etcd {
			args = append(args, "--peers", c.metas)
		}
		c.Metas = append(c.Metas, c.server(name, args))
	}
	for i := range c.opts.Chunkds {
		name := fmt.Sprintf("chunkd-%d", i+1)
		c.Chunkds = append(c.Chunkds, c.server(name, []string{"chunkd", "serve", "--device", data, "--listen", "0.0.0.0:7410", "--" + tls.InsecureFlag,
			"--advertise", name + ":7410", "--advertise-control", name + ":8410"}))
	}
}

func (c *Cell) server(name string, args []string) *Node {
	return &Node{Name: name, cell: c, image: c.opts.Images.Strake, args: args, mounts: append(c.volume(name, data), c.keys...), env: []string{"STRAKE_CELL=" + c.Address}}
}

// volume gives the options that mount a node's data.
func (c *Cell) volume(name, at string) []string {
	source := c.prefix + "-" + name
	if dir := c.opts.Dirs[name]; dir != "" {
		source = dir
	} else {
		_, err := c.engine.docker(c.t.Context(), append(append([]string{"volume", "create"}, c.engine.label()...), source)...)
		c.must(err)
	}
	return []string{"-v", source + ":" + at}
}

// newNetwork makes a network and makes it the cell's.
func (c *Cell) newNetwork(ctx context.Context) error {
	c.nets++
	c.network = fmt.Sprintf("%s-net-%d", c.prefix, c.nets)
	_, err := c.engine.docker(ctx, append(append([]string{"network", "create", "--internal"}, c.engine.label()...), c.network)...)
	return err
}

// Move puts every node, workloads too, onto another network: all addresses change.
func (c *Cell) Move(ctx context.Context) {
	c.t.Helper()
	old := c.network
	c.must(c.newNetwork(ctx))
	c.Note("move to network %s", c.network)
	// All at once: one after another takes the engine many seconds, in which the
	// last can't reach the first.
	var moves errgroup.Group
	for _, n := range c.all() {
		moves.Go(func() error { return n.move(ctx, old) })
	}
	c.must(moves.Wait())
}

// Servers are the metadata and the chunk servers.
func (c *Cell) Servers() []*Node { return append(append([]*Node{}, c.Metas...), c.Chunkds...) }

// Loads are the workloads, also those that have ended.
func (c *Cell) Loads() []*Node { return slices.Clone(c.others) }

func (c *Cell) all() []*Node {
	var list []*Node
	if c.Etcd != nil {
		list = append(list, c.Etcd)
	}
	return append(append(list, c.Servers()...), c.others...)
}

// Load starts the workload program in a container.
func (c *Cell) Load(ctx context.Context, name string, args ...string) *Node {
	c.t.Helper()
	return c.LoadOf(ctx, c.opts.Images.Loader, name, args...)
}

// LoadOf is Load with another build's program.
func (c *Cell) LoadOf(ctx context.Context, image, name string, args ...string) *Node {
	c.t.Helper()
	n := &Node{Name: name, cell: c, image: image, mounts: c.keys, args: append(args, "--cell", c.Address)}
	c.others = append(c.others, n)
	c.Note("%s: %s", name, strings.Join(args, " "))
	c.must(n.run(ctx))
	return n
}

// Run runs the strake command inside the first metadata server that runs. The cell
// is named by its addresses: etcd may be what was harmed.
func (c *Cell) Run(ctx context.Context, args ...string) (string, error) {
	args = append(args, "--cell", c.metas)
	for _, m := range c.Metas {
		if m.Running(ctx) {
			return m.Exec(ctx, args...)
		}
	}
	return "", fmt.Errorf("no metadata server runs")
}

// Status asks for the cell's status.
func (c *Cell) Status(ctx context.Context) (s client.CellStatus, err error) {
	out, err := c.Run(ctx, "status", "-o", "json")
	if out == "" && err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(out), &s) // degraded is an exit code, not a failure
}

// WaitUp waits until all servers are up.
func (c *Cell) WaitUp() {
	c.t.Helper()
	c.WaitStatus("all servers are up", func(s client.CellStatus) bool {
		for _, m := range s.Members {
			if !m.Reachable {
				return false
			}
		}
		return int(s.ServersUp) == len(c.Chunkds) && s.ServersDown == 0 && len(s.Members) == len(c.Metas)
	})
}

// WaitMembers waits until all metadata servers reach each other.
func (c *Cell) WaitMembers() {
	c.t.Helper()
	c.WaitStatus("all metadata servers are there", func(s client.CellStatus) bool {
		for _, m := range s.Members {
			if !m.Reachable {
				return false
			}
		}
		return len(s.Members) == len(c.Metas)
	})
}

// WaitStatus waits until the cell's status is as wanted.
func (c *Cell) WaitStatus(what string, ok func(client.CellStatus) bool) {
	c.t.Helper()
	var s client.CellStatus
	var err error
	c.Eventually(what, func() bool {
		s, err = c.Status(c.t.Context())
		return err == nil && ok(s)
	}, func() string { return fmt.Sprintf("status %+v, %v", s, err) })
	c.Note("%s", what)
}

// Eventually polls until ok, or fails the test; last may tell more.
func (c *Cell) Eventually(what string, ok func() bool, last func() string) {
	c.t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			more := ""
			if last != nil {
				more = ": " + last()
			}
			c.t.Fatalf("not within %v: %s%s", Patience, what, more)
		}
	}
}

// Leader gives the metadata server that leads.
func (c *Cell) Leader() *Node {
	c.t.Helper()
	var leader *Node
	c.WaitStatus("a leader is known", func(s client.CellStatus) bool {
		for _, m := range s.Members {
			for _, n := range c.Metas {
				if m.Leader && m.Address == n.Name+":7400" {
					leader = n
				}
			}
		}
		return leader != nil
	})
	return leader
}

// Note adds a line to the timeline.
func (c *Cell) Note(format string, args ...any) {
	c.noting.Lock()
	defer c.noting.Unlock()
	c.lines = append(c.lines, fmt.Sprintf("%7.2f s  ", time.Since(c.began).Seconds())+fmt.Sprintf(format, args...))
}

func (c *Cell) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// end shows what a failed test needs to be understood, and removes the cell.
func (c *Cell) end() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if c.owner.Failed() {
		c.owner.Logf("seed %d; again: make e2e SEED=%d\n%s", c.Seed, c.Seed, strings.Join(c.lines, "\n"))
		for _, n := range c.all() {
			c.owner.Logf("--- %s\n%s", n.Name, n.Log(ctx, 40))
		}
		c.keep()
	}
	var names []string
	for _, n := range c.all() {
		names = append(names, n.Container())
	}
	_, _ = c.engine.docker(ctx, append([]string{"rm", "-f"}, names...)...)
	_, _ = c.engine.docker(ctx, append([]string{"volume", "rm", "-f"}, names...)...)
	for i := range c.nets {
		_, _ = c.engine.docker(ctx, "network", "rm", fmt.Sprintf("%s-net-%d", c.prefix, i+1))
	}
}

// keep writes all that the nodes logged into a folder, with the goroutines of those
// that run, which ends them: what failed may be one that hangs.
func (c *Cell) keep() {
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "strake-e2e-failed-")
	var group errgroup.Group
	group.SetLimit(startAtOnce)
	for _, n := range c.all() {
		group.Go(func() error {
			if n.Running(ctx) {
				_, _ = n.docker(ctx, "kill", "-s", "QUIT", n.Container())
				_, _ = n.Wait(ctx)
			}
			return os.WriteFile(filepath.Join(dir, n.Name+".log"), []byte(n.Log(ctx, -1)), 0o644)
		})
	}
	c.owner.Logf("all logs, with the goroutines of those that ran: %s (%v)", dir, errors.Join(err, group.Wait()))
}

// combined runs a program and gives all that it wrote.
func combined(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}
