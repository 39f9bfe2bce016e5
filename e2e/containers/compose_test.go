package containers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/e2e/container"
)

// TestComposeStartsACell starts deploy/compose as `make up` does: three metadata
// servers that are started alike and know nothing but etcd form one cell.
func TestComposeStartsACell(t *testing.T) {
	built := images(t)
	project := filepath.Base(stage.dir)
	file, err := filepath.Abs("../../deploy/compose/compose.yaml")
	must(t, err)
	program := []string{"docker-compose"}
	if exec.Command("docker", "compose", "version").Run() == nil {
		program = []string{"docker", "compose"}
	}
	compose := func(ctx context.Context, args ...string) (string, error) {
		all := append(append(program, "-p", project, "-f", file), args...)
		cmd := exec.CommandContext(ctx, all[0], all[1:]...)
		cmd.Env = append(os.Environ(), "STRAKE_PROJECT="+project, "STRAKE_IMAGE="+built.Strake, "STRAKE_ETCD_IMAGE="+built.Etcd)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := compose(t.Context(), "version"); err != nil {
		t.Skipf("*** SKIPPED: no docker-compose: %v: %s ***", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := compose(context.Background(), "logs", "--no-color", "--tail", "20")
			t.Log(out)
		}
		if out, err := compose(context.Background(), "down", "-v", "-t", "5"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	})
	begun := time.Now()
	if out, err := compose(t.Context(), "up", "-d"); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	var out []byte
	for deadline := time.Now().Add(container.Patience); !strings.Contains(string(out), `"servers_up": 8`); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not up: %s", out)
		}
		out, _ = exec.Command("docker", "exec", project+"-meta-2", "/strake", "status", "-o", "json").CombinedOutput()
	}
	took := time.Since(begun)
	t.Logf("three metadata and eight chunk servers were ready %v after `up`", took.Round(100*time.Millisecond))
	if *bars && took > 20*time.Second {
		t.Errorf("ready after %v", took)
	}
	healthy(t, project, 12)
	for _, name := range []string{"meta-1", "meta-3", "chunkd-1", "chunkd-8"} {
		if out, err := exec.Command("docker", "exec", project+"-"+name, "/strake", "health", "--ready").CombinedOutput(); err != nil {
			t.Errorf("%s is not well: %s", name, out)
		}
	}
	if out, err := exec.Command("docker", "exec", project+"-meta-1", "/strake", "cell", "ls", "--cell", "etcd://etcd").CombinedOutput(); err != nil || !strings.Contains(string(out), "demo") || !strings.Contains(string(out), "8 up, 0 down") {
		t.Errorf("cell ls: %v: %s", err, out)
	}
}

// healthy waits until the engine's own checks find all containers of a project well.
func healthy(t *testing.T, project string, want int) {
	t.Helper()
	var out []byte
	for deadline := time.Now().Add(container.Patience); ; time.Sleep(100 * time.Millisecond) {
		out, _ = exec.Command("docker", "ps", "--filter", "name="+project+"-", "--filter", "health=healthy", "--format", "{{.Names}}").CombinedOutput()
		if len(strings.Fields(string(out))) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("of %d containers these are healthy: %s", want, out)
		}
	}
}
