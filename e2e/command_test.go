package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
)

// strake runs the command against a cell and wants an exit code.
func strake(t *testing.T, c *cluster.Cluster, code int, args ...string) cluster.Result {
	t.Helper()
	r, err := c.Run(t.Context(), args...)
	check(t, err)
	if r.Code != code {
		t.Fatalf("strake %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

// TestStatusTellsHealthByExitCode: 0 healthy, 1 degraded, 2 data at risk; and the
// data is read all the same.
func TestStatusTellsHealthByExitCode(t *testing.T) {
	c := start(t, cluster.Options{})
	strake(t, c, 0, "status")
	strake(t, c, 0, "volume", "create", "v", "--size", "64MiB")
	file := filepath.Join(t.TempDir(), "in")
	content := make([]byte, 20<<20)
	rand.Read(content)
	check(t, os.WriteFile(file, content, 0o644))
	strake(t, c, 0, "volume", "import", "v", file)
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	for lost, want := range []string{"healthy", "degraded", "at-risk"} {
		if lost > 0 {
			check(t, c.Chunkds[lost].Kill())
			check(t, c.WaitStatus(t.Context(), want, func(s client.CellStatus) bool { return int(s.ServersDown) == lost && s.Health == want }))
		}
		strake(t, c, lost, "status")
		r := strake(t, c, 0, "volume", "export", "v", filepath.Join(t.TempDir(), "out"), "--bytes", fmt.Sprint(len(content)), "-o", "json")
		if !strings.Contains(r.Stdout, sum) {
			t.Fatalf("%d servers lost: got %s, want %s", lost, r.Stdout, sum)
		}
	}
}

// TestServersRefuseWhatIsNotTheirs: a device of another cell, a device in use, a
// port in use.
func TestServersRefuseWhatIsNotTheirs(t *testing.T) {
	a, b := start(t, cluster.Options{Chunkds: 2}), start(t, cluster.Options{Chunkds: 2})
	device := filepath.Join(filepath.Dir(a.Chunkds[0].Log()), "chunkd-1")
	serve := []string{"chunkd", "serve", "--listen", "127.0.0.1:0", "--device"}
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"a device in use":      {append(serve, device, "--cell", a.Cell), "held by another process"},
		"a directory not made": {append(serve, device+"-none", "--cell", a.Cell), "make the directory"},
		"a port in use":        {[]string{"chunkd", "serve", "--device", t.TempDir(), "--listen", a.Chunkds[0].Addr, "--cell", a.Cell}, a.Chunkds[0].Addr},
		"a metadata port":      {[]string{"meta", "serve", "--dir", t.TempDir(), "--listen", a.Cell}, a.Cell},
		"beyond loopback":      {[]string{"meta", "serve", "--dir", t.TempDir(), "--listen", "0.0.0.0:0"}, "insecure-anyone-can"},
	} {
		refused(t, what, c.want, c.args...)
	}
	check(t, a.Chunkds[0].Stop())
	refused(t, "a device of another cell", "cell", append(serve, device, "--cell", b.Cell)...)
}

func refused(t *testing.T, what, want string, args ...string) {
	t.Helper()
	r, err := cluster.Command(t.Context(), binary(t), args...)
	if err != nil || r.Code != 1 || !strings.Contains(r.Stderr, want) {
		t.Errorf("%s: %v, exit %d, want 1 and %q in\n%s", what, err, r.Code, want, r.Stderr)
	}
}

// TestSigtermEndsEveryDaemonCleanly: exit code 0, dev included, which leaves
// nothing behind.
func TestSigtermEndsEveryDaemonCleanly(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 2})
	out := &lines{}
	dev, err := c.Spawn("dev", cluster.Program{Binary: binary(t), Stdout: out, Args: []string{"dev", "--listen", "127.0.0.1:0", "--chunkds", "2"}})
	check(t, err)
	eventually(t, "dev says what to try", 60*time.Second, func() bool { return strings.Contains(out.String(), "Ctrl-C stops it") || !dev.Running() })
	dir := strings.TrimSpace(strings.SplitAfter(strings.SplitN(out.String(), "\n", 2)[0], "data in ")[1])
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("dev's data: %v", err)
	}
	check(t, dev.Stop())
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("dev left %s behind", dir)
	}
	for _, p := range []*cluster.Process{c.Chunkds[0], c.Chunkds[1], c.Metas[0]} {
		check(t, p.Stop())
	}
}
