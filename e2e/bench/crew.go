package bench

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
)

// workerEnd bounds how long a worker may take to end when its orders end.
const workerEnd = 30 * time.Second

// crew starts worker processes: `BINARY bench worker`. The kernel kills them when
// this process dies, by a signal that hangs on the thread that started them: one
// goroutine, locked to its thread for the crew's life, starts them all.
type crew struct {
	binary string
	starts chan start
	done   chan struct{}
}

type start struct {
	cmd *exec.Cmd
	err chan error
}

func newCrew(binary string) *crew {
	c := &crew{binary: binary, starts: make(chan start), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for s := range c.starts {
			s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			s.err <- s.cmd.Start()
		}
	}()
	return c
}

func (c *crew) close() {
	close(c.starts)
	<-c.done
}

// hand is one worker process. One order at a time.
type hand struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	encoder *json.Encoder
	answers *json.Decoder
	said    *tail
}

// hire starts a worker. dismiss it.
func (c *crew) hire() (*hand, error) {
	h := &hand{cmd: exec.Command(c.binary, "bench", "worker"), said: &tail{}}
	h.cmd.Stderr = h.said
	h.cmd.Env = os.Environ()
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "start a worker")
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "start a worker")
	}
	h.orders, h.encoder, h.answers = in, json.NewEncoder(in), json.NewDecoder(out)
	s := start{h.cmd, make(chan error, 1)}
	c.starts <- s
	if err := <-s.err; err != nil {
		return nil, errs.As(err, errs.Unavailable, "start a worker")
	}
	return h, nil
}

func (h *hand) pid() int { return h.cmd.Process.Pid }

// do gives an order and waits for the answer; when ctx ends first the worker is
// killed.
func (h *hand) do(ctx context.Context, o order) (report, error) {
	stop := context.AfterFunc(ctx, func() { _ = h.cmd.Process.Kill() })
	defer stop()
	var r report
	err := h.encoder.Encode(o)
	if err == nil {
		err = h.answers.Decode(&r)
	}
	switch {
	case ctx.Err() != nil:
		return r, errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "bench %s", o.Do)
	case err != nil:
		return r, errs.As(err, errs.Unavailable, "a worker ended at order %q: %s", o.Do, h.said)
	case r.Error != "":
		return r, errs.New(r.Kind, "bench "+o.Do, "%s", r.Error)
	}
	return r, nil
}

// dismiss ends the worker and waits for its end.
func (h *hand) dismiss() {
	h.orders.Close()
	late := time.AfterFunc(workerEnd, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, h.answers.Buffered())
	_ = h.cmd.Wait()
}

// team is several workers that get the same order at once.
type team []*hand

// hireTeam starts n workers.
func (c *crew) hireTeam(n int) (team, error) {
	var t team
	for range n {
		h, err := c.hire()
		if err != nil {
			t.dismiss()
			return nil, err
		}
		t = append(t, h)
	}
	return t, nil
}

func (t team) dismiss() {
	var group sync.WaitGroup
	for _, h := range t {
		group.Go(h.dismiss)
	}
	group.Wait()
}

func (t team) pids() (list []int) {
	for _, h := range t {
		list = append(list, h.pid())
	}
	return list
}

// all gives each worker its order at once and waits for all the answers.
func (t team) all(ctx context.Context, o func(i int) order) ([]report, error) {
	reports := make([]report, len(t))
	group, ctx := errgroup.WithContext(ctx)
	for i, h := range t {
		group.Go(func() (err error) {
			reports[i], err = h.do(ctx, o(i))
			return err
		})
	}
	return reports, group.Wait()
}

// same is one order for all.
func same(o order) func(int) order { return func(int) order { return o } }

// maxTail bounds what is kept of a worker's stderr, in bytes.
const maxTail = 8 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
