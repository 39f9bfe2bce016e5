// Package etcdtest runs a real etcd for tests: the server of etcd's own module
// (deploy/etcd), built once into Go's cache, as a process on loopback.
package etcdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// Ports lie below the range of outgoing connections.
	firstPort = 16000
	lastPort  = 30000
	// readyTimeout bounds a start.
	readyTimeout = 30 * time.Second
)

// Etcd is one server. Its methods are for one goroutine, the test's.
type Etcd struct {
	Host string // HOST:PORT of its clients

	t      testing.TB
	binary string
	dir    string
	args   []string
	cmd    *exec.Cmd
	ended  chan struct{}
	log    bytes.Buffer
}

// Start starts an etcd that ends with the test. args are added to its command
// line; scheme is http or https, as its clients come.
func Start(t testing.TB, scheme string, args ...string) *Etcd {
	t.Helper()
	binary, err := Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &Etcd{Host: freeHost(t), t: t, binary: binary, dir: t.TempDir()}
	peer := "http://" + freeHost(t)
	e.args = append([]string{"--name", "test", "--listen-client-urls", scheme + "://" + e.Host, "--advertise-client-urls", scheme + "://" + e.Host,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "test=" + peer,
		"--log-level", "warn", "--unsafe-no-fsync"}, args...)
	e.Restart()
	t.Cleanup(func() {
		e.Kill()
		if t.Failed() {
			t.Logf("etcd's log:\n%s", e.log.String())
		}
	})
	return e
}

// Binary builds the server, unless Go's cache has it, and gives its path.
func Binary(ctx context.Context) (string, error) { return build(ctx, "server") }

// Etcdctl does the same with etcd's own client, which is its image's health check.
func Etcdctl(ctx context.Context) (string, error) { return build(ctx, "etcdctl") }

func build(ctx context.Context, tool string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "deploy", "etcd"), "tool", "-n", tool)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return "", fmt.Errorf("build etcd's %s: %w", tool, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// moduleRoot is the folder of strake's go.mod, from here upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "etcd", "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no deploy/etcd above the working directory")
}

// Restart starts it, or starts it again, and waits until it answers.
func (e *Etcd) Restart() {
	e.t.Helper()
	cmd := exec.Command(e.binary, append([]string{"--data-dir", e.dir}, e.args...)...)
	cmd.Stdout, cmd.Stderr = &e.log, &e.log
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	e.cmd, e.ended = cmd, ended
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", e.Host, time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("etcd does not answer: %v\n%s", err, e.log.String())
		}
	}
}

// Kill ends it at once.
func (e *Etcd) Kill() {
	_ = e.cmd.Process.Kill()
	<-e.ended
}

// Pause and Resume stop it from running and let it go on, its connections open.
func (e *Etcd) Pause()  { _ = e.cmd.Process.Signal(syscall.SIGSTOP) }
func (e *Etcd) Resume() { _ = e.cmd.Process.Signal(syscall.SIGCONT) }

// Forget takes all that a killed etcd knew.
func (e *Etcd) Forget() { e.dir = e.t.TempDir() }

// URL is the address of a cell in it.
func (e *Etcd) URL(cell string) string { return "etcd://" + e.Host + "/" + cell }

// freeHost gives a free address on loopback.
func freeHost(t testing.TB) string {
	t.Helper()
	for range 1000 {
		host := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort))
		if l, err := net.Listen("tcp", host); err == nil {
			l.Close()
			return host
		}
	}
	t.Fatal("no free port")
	return ""
}
