package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

var quick = Timing{
	Heartbeat: 250 * time.Millisecond, Commit: 5 * time.Millisecond, RPC: 2 * time.Second,
	Watchdog: 5 * time.Second, SnapshotInterval: time.Hour, LogFile: 1 << 20,
}

// poison is a command that list can't apply.
const poison = "poison"

// list is a Machine that keeps all commands.
type list struct {
	mu       sync.Mutex
	commands []string // guarded by mu
	newer    bool     // snapshots are of a newer version
}

func (l *list) Apply(_ uint64, c []byte) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if string(c) == poison {
		return nil, errs.New(errs.Version, "", "a command of a newer version")
	}
	l.commands = append(l.commands, string(c))
	return len(l.commands), nil
}

func (l *list) Snapshot() (io.WriterTo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.Marshal(l.commands)
	return bytes.NewReader(b), err
}

func (l *list) Restore(r io.Reader) error {
	if l.newer {
		return errs.New(errs.Version, "", "a snapshot of a newer version")
	}
	var commands []string
	if err := json.NewDecoder(r).Decode(&commands); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands = commands
	return nil
}

func (l *list) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.commands...)
}

// member is one server of a test group.
type member struct {
	*Replica
	t       *testing.T
	fs      vfs.FS
	addr    string
	list    *list
	timing  Timing
	wrap    func(store) store
	fatal   chan error
	leading chan struct{} // one for each Lead
}

// newMember gives a member with a directory and an address, not yet open.
func newMember(t *testing.T) *member {
	t.Helper()
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	return &member{t: t, fs: vfs.NewMem(vfs.MemOptions{}), addr: addr, timing: quick}
}

func (m *member) options() Options {
	m.list = &list{}
	m.fatal = make(chan error, 1)
	m.leading = make(chan struct{}, 16)
	return Options{
		ID: m.addr, FS: m.fs, Machine: m.list, Dial: tls.Policy{}.Dial, Timing: m.timing,
		Logger: slog.New(slog.NewTextHandler(testWriter{m.t}, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Lead: func(ctx context.Context, _ uint64) {
			m.leading <- struct{}{}
			<-ctx.Done()
		},
		Fatal:     func(err error) { m.fatal <- err },
		wrapStore: m.wrap,
	}
}

// open opens the directory; the member is closed with the test.
func (m *member) open() error {
	opts := m.options()
	var l net.Listener
	eventually(m.t, "listen", func() (ok bool) {
		var err error
		l, err = tls.Policy{}.Listen(context.Background(), m.addr)
		return err == nil
	})
	opts.Listener = l
	r, err := Open(opts)
	if err != nil {
		l.Close()
		return err
	}
	m.Replica = r
	m.t.Cleanup(func() { m.stop() })
	return nil
}

// start opens and starts.
func (m *member) start(members ...string) {
	m.t.Helper()
	if err := m.open(); err != nil {
		m.t.Fatal(err)
	}
	if err := m.Start(members); err != nil {
		m.t.Fatal(err)
	}
}

func (m *member) stop() {
	m.Close()
	m.opts.Listener.Close()
}

func (m *member) propose(command string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	if _, err := m.Propose(ctx, []byte(command)); err != nil {
		m.t.Fatalf("propose %q at %s: %v", command, m.addr, err)
	}
}

// group starts n members as one group.
func group(t *testing.T, n int) []*member {
	t.Helper()
	var members []*member
	var addrs []string
	for range n {
		m := newMember(t)
		members, addrs = append(members, m), append(addrs, m.addr)
	}
	for i, m := range members {
		if i == 0 {
			m.start(addrs...)
		} else {
			m.start()
		}
	}
	return members
}

// leaderOf waits for the member that leads.
func leaderOf(t *testing.T, members ...*member) *member {
	t.Helper()
	var leader *member
	eventually(t, "a leader", func() bool {
		for _, m := range members {
			if m.Leading() == nil {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// testWriter sends log lines to the test, as long as it runs.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(bytes.TrimSpace(p)))
	}
	return len(p), nil
}

func asError(err error, e **errs.Error) bool { return errors.As(err, e) }

// benchmark runs calls of 64 callers at one member on the real file system.
func benchmark(b *testing.B, do func(*member, context.Context) error) {
	fs, err := vfs.NewOS(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	l, err := tls.Policy{}.Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	m := &member{fs: fs, addr: l.Addr().String(), timing: quick}
	opts := m.options()
	opts.Listener, opts.Logger = l, nil
	if m.Replica, err = Open(opts); err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	if err := m.Start([]string{m.addr}); err != nil {
		b.Fatal(err)
	}
	<-m.leading
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := do(m, b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
