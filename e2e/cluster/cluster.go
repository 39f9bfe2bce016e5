package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"strake/client"
	"strake/internal/health"
	"strake/internal/tls"
)

const (
	// readyTimeout bounds the start of a cell and every wait for a state of it.
	readyTimeout = 60 * time.Second
	pollEvery    = 50 * time.Millisecond
	// askTimeout bounds one round of asking all chunk servers.
	askTimeout = 5 * time.Second
)

// Options describe a cluster.
type Options struct {
	Binary  string // the strake command
	Dir     string // where data and logs go; must exist
	Meta    int    // metadata servers: 1 (default) or 3
	Chunkds int    // chunk servers, default 6
	// ChunkdArgs are added to every chunk server's command line.
	ChunkdArgs []string
	// Program gives what runs as a server, with what environment on top of this
	// process's, where it is not the strake command; nil, or an empty binary: it is.
	Program func(server string) (binary string, env []string)
}

// Cluster is a running cell. Safe for concurrent use.
type Cluster struct {
	Metas   []*Process
	Chunkds []*Process
	Cell    string // the metadata servers' addresses, as --cell takes them

	opts    Options
	spawner *spawner

	mu    sync.Mutex
	extra []*Process // guarded by mu: commands that tests run
}

// Start starts a cell and waits until it is healthy. Close it.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Meta == 0 {
		opts.Meta = 1
	}
	if opts.Chunkds == 0 {
		opts.Chunkds = 6
	}
	c := &Cluster{opts: opts, spawner: newSpawner()}
	err := c.define()
	for _, p := range c.Servers() {
		if err == nil {
			err = p.start()
		}
	}
	if err == nil {
		err = c.WaitHealthy(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// define gives every server its name, addresses and directories.
func (c *Cluster) define() error {
	ports, err := freePorts(c.opts.Meta + 2*c.opts.Chunkds)
	if err != nil {
		return err
	}
	next := func() string {
		p := ports[0]
		ports = ports[1:]
		return fmt.Sprintf("127.0.0.1:%d", p)
	}
	var cell []string
	for range c.opts.Meta {
		cell = append(cell, next())
	}
	c.Cell = strings.Join(cell, ",")
	for i, addr := range cell {
		name := fmt.Sprintf("meta-%d", i+1)
		c.Metas = append(c.Metas, c.server(name, addr, "meta", "serve", "--listen", addr, "--peers", c.Cell, "--dir", filepath.Join(c.opts.Dir, name)))
	}
	for i := range c.opts.Chunkds {
		name, data, control := fmt.Sprintf("chunkd-%d", i+1), next(), next()
		dir := filepath.Join(c.opts.Dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		args := []string{"chunkd", "serve", "--cell", c.Cell, "--listen", data, "--control", control,
			"--device", dir, "--domain", "zone/rack/" + name, "--calibrate=false"}
		p := c.server(name, data, append(args, c.opts.ChunkdArgs...)...)
		p.Control = control
		c.Chunkds = append(c.Chunkds, p)
	}
	return nil
}

func (c *Cluster) process(name, addr string, args ...string) *Process {
	return &Process{Name: name, Addr: addr, cluster: c, binary: c.opts.Binary, args: args, log: filepath.Join(c.opts.Dir, name+".log")}
}

// server is a process that Options.Program may have another program for.
func (c *Cluster) server(name, addr string, args ...string) *Process {
	p := c.process(name, addr, args...)
	if c.opts.Program != nil {
		if binary, env := c.opts.Program(name); binary != "" {
			p.binary, p.env = binary, env
		}
	}
	return p
}

// Dir is where data and logs are.
func (c *Cluster) Dir() string { return c.opts.Dir }

// Servers are all servers, metadata servers first.
func (c *Cluster) Servers() []*Process { return append(append([]*Process{}, c.Metas...), c.Chunkds...) }

// Program is what Spawn runs.
type Program struct {
	Binary string   // empty: the strake command, with --cell set
	Args   []string // without the program's name
	Env    []string // on top of this process's
	Stdin  *os.File // nil: empty
	Stdout io.Writer
}

// Spawn runs a program in the background. What it writes to stderr, and to stdout
// unless that goes elsewhere, is its log. It is stopped with the cluster.
func (c *Cluster) Spawn(name string, run Program) (*Process, error) {
	p := c.process(name, "", run.Args...)
	p.stdin, p.stdout, p.env = run.Stdin, run.Stdout, run.Env
	if run.Binary == "" {
		p.args = append(p.args, "--cell", c.Cell)
	} else {
		p.binary = run.Binary
	}
	c.mu.Lock()
	c.extra = append(c.extra, p)
	c.mu.Unlock()
	return p, p.start()
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs the strake command to its end, with --cell set.
func (c *Cluster) Run(ctx context.Context, args ...string) (Result, error) {
	return Command(ctx, c.opts.Binary, append(args, "--cell", c.Cell)...)
}

// Dial connects to the cell.
func (c *Cluster) Dial(ctx context.Context) (*client.Cell, error) {
	return client.Dial(ctx, client.Config{Addresses: c.Cell})
}

// WaitHealthy waits until all servers serve and the cell says that it is healthy.
func (c *Cluster) WaitHealthy(ctx context.Context) error {
	return c.WaitStatus(ctx, "healthy", func(s client.CellStatus) bool { return s.Health == "healthy" && c.complete(ctx, s) })
}

// WaitComplete waits until all servers serve.
func (c *Cluster) WaitComplete(ctx context.Context) error {
	return c.WaitStatus(ctx, "complete", func(s client.CellStatus) bool { return c.complete(ctx, s) })
}

// complete tells whether all chunk servers serve. They are asked themselves too: of one
// that was killed and started again the cell says for seconds that it is up.
func (c *Cluster) complete(ctx context.Context, s client.CellStatus) bool {
	return int(s.ServersUp) == len(c.Chunkds) && c.serving(ctx)
}

// serving tells whether every chunk server answers that it is registered and serves.
func (c *Cluster) serving(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, p := range c.Chunkds {
		if health.Ask(ctx, tls.Policy{}, p.Control, health.Ready) != nil {
			return false
		}
	}
	return true
}

// WaitStatus waits until the cell's status is as wanted. It gives up early when a
// server ended by itself.
func (c *Cluster) WaitStatus(ctx context.Context, what string, ok func(client.CellStatus) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var last client.CellStatus
	for {
		s, err := c.status(ctx)
		if err == nil {
			if last = s; ok(s) {
				return nil
			}
		}
		if bad := c.complaints(); bad != nil {
			return bad
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cell is not %s after %v: %v; last status %+v", what, readyTimeout, err, last)
		case <-time.After(pollEvery):
		}
	}
}

func (c *Cluster) status(ctx context.Context) (client.CellStatus, error) {
	cell, err := c.Dial(ctx)
	if err != nil {
		return client.CellStatus{}, err
	}
	defer cell.Close()
	return cell.Status(ctx)
}

// Leader gives the metadata server that leads.
func (c *Cluster) Leader(ctx context.Context) (*Process, error) {
	s, err := c.status(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range s.Members {
		for _, p := range c.Metas {
			if m.Leader && m.Address == p.Addr {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("no metadata server leads: %+v", s.Members)
}

// complaints are what is wrong with the processes.
func (c *Cluster) complaints() error {
	var all []error
	for _, p := range c.all() {
		if bad := p.complaint(); bad != "" {
			all = append(all, fmt.Errorf("%s\n%s", bad, p.Tail(60)))
		}
	}
	return errors.Join(all...)
}

func (c *Cluster) all() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(c.Servers(), c.extra...)
}

// Close stops everything that still runs, by pid: commands, chunk servers, then
// metadata servers. It tells what went wrong with the processes.
func (c *Cluster) Close() error {
	c.mu.Lock()
	extra := c.extra
	c.mu.Unlock()
	bad := c.complaints()
	for _, group := range [][]*Process{extra, c.Chunkds, c.Metas} {
		for _, p := range group {
			p.end(syscall.SIGTERM)
		}
		deadline := time.After(stopTimeout)
		for _, p := range group {
			if !p.Running() {
				continue
			}
			select {
			case <-p.Ended():
			case <-deadline:
				p.end(syscall.SIGQUIT)
				<-p.Ended()
				bad = errors.Join(bad, fmt.Errorf("%s did not stop within %v\n%s", p.Name, stopTimeout, p.Tail(200)))
			}
		}
	}
	c.spawner.close()
	return bad
}
