package container

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// label marks all that belongs to a process of this package; its value is the pid.
const label = "strake-e2e"

// Engine is Docker, as this process uses it. Safe for concurrent use.
type Engine struct {
	prefix string
	cells  atomic.Int32
}

// Open finds the engine and removes what dead processes left behind. The error
// says why there is none.
func Open(ctx context.Context) (*Engine, error) {
	e := &Engine{prefix: fmt.Sprintf("%s-%d", label, os.Getpid())}
	if _, err := e.docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return nil, err
	}
	return e, e.sweep(ctx, func(pid int) bool { return pid != os.Getpid() && syscall.Kill(pid, 0) == syscall.ESRCH })
}

// Close removes all that this process made.
func (e *Engine) Close(ctx context.Context) error {
	return e.sweep(ctx, func(pid int) bool { return pid == os.Getpid() })
}

// sweep removes what belongs to processes that gone tells.
func (e *Engine) sweep(ctx context.Context, gone func(pid int) bool) error {
	for _, kind := range []struct {
		list, remove []string
	}{
		{[]string{"ps", "-aq", "--filter", "label=" + label}, []string{"rm", "-fv"}},
		{[]string{"network", "ls", "-q", "--filter", "label=" + label}, []string{"network", "rm"}},
		{[]string{"volume", "ls", "-q", "--filter", "label=" + label}, []string{"volume", "rm"}},
		{[]string{"images", "-q", "--filter", "label=" + label}, []string{"rmi", "-f"}},
	} {
		out, err := e.docker(ctx, kind.list...)
		if err != nil {
			return err
		}
		for _, id := range strings.Fields(out) {
			owner, err := e.docker(ctx, "inspect", "--format", `{{with .Config}}{{index .Labels "`+label+`"}}{{end}}`, id)
			if err != nil || owner == "" {
				owner, _ = e.docker(ctx, "inspect", "--format", `{{index .Labels "`+label+`"}}`, id)
			}
			if pid, err := strconv.Atoi(owner); err == nil && gone(pid) {
				_, _ = e.docker(ctx, append(kind.remove, id)...) // an image may be listed twice
			}
		}
	}
	return nil
}

// label gives the options that mark something as this process's.
func (e *Engine) label() []string {
	return []string{"--label", label + "=" + strconv.Itoa(os.Getpid())}
}

// docker runs one command of the client and gives its trimmed output.
func (e *Engine) docker(ctx context.Context, args ...string) (string, error) {
	var bad strings.Builder
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr = &bad
	out, err := cmd.Output()
	if err != nil {
		return strings.TrimSpace(string(out)), fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(bad.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
