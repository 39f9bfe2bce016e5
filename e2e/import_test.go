package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strake/e2e/cluster"
)

// idleImport starts an import of standard input that gets some bytes, of which none
// fills a chunk, and then no more; it is stopped in the middle of a read.
func idleImport(t *testing.T, c *cluster.Cluster, name string, content []byte, args ...string) (*cluster.Process, *lines) {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	t.Cleanup(func() { w.Close() })
	out := &lines{}
	p, err := c.Spawn(name, cluster.Program{Stdin: r, Stdout: out, Args: append([]string{"volume", "import", name, "-"}, args...)})
	check(t, err)
	r.Close()
	_, err = w.Write(content)
	check(t, err)
	eventually(t, "the importer holds the lease and has read all", 60*time.Second, func() bool {
		v := strake(t, c, 0, "volume", "show", name, "-o", "json")
		return strings.Contains(v.Stdout, `"state": "open"`) && pipeEmpty(t, w)
	})
	return p, out
}

// exported is a part of a volume.
func exported(t *testing.T, c *cluster.Cluster, name string, n int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out")
	strake(t, c, 0, "volume", "export", name, path, "--bytes", strconv.Itoa(n))
	b, err := os.ReadFile(path)
	check(t, err)
	return b
}

// TestAnImportThatIsStoppedKeepsWhatItRead: SIGTERM and Ctrl-C while it waits for
// bytes end it, all that it read is there, the lease is free, and what it says of
// going on works.
func TestAnImportThatIsStoppedKeepsWhatItRead(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 3})
	content := make([]byte, 300_001)
	rand.Read(content)
	for _, name := range []string{"term", "int"} {
		strake(t, c, 0, "volume", "create", name, "--size", "64MiB")
	}

	p, out := idleImport(t, c, "term", content, "-o", "json")
	check(t, p.Stop()) // wants exit code 0
	var result struct {
		Flushed  int64  `json:"flushed_bytes"`
		SHA256   string `json:"sha256"`
		Complete *bool  `json:"complete"`
	}
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	check(t, json.Unmarshal([]byte(all[len(all)-1]), &result))
	if result.Flushed != int64(len(content)) || result.Complete == nil || *result.Complete || result.SHA256 != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("after SIGTERM: got %s, want %d bytes, not complete", out, len(content))
	}
	if !bytes.Equal(exported(t, c, "term", len(content)), content) {
		t.Error("after SIGTERM: the volume holds other bytes")
	}

	p, _ = idleImport(t, c, "int", content)
	if code, err := p.Interrupt(20 * time.Second); err != nil || code != 1 {
		t.Fatalf("after SIGINT: exit %d, %v\n%s", code, err, p.Tail(20))
	}
	log := p.Tail(20)
	if !strings.Contains(log, "300001 bytes are durable") || !strings.Contains(log, "strake volume import int - --skip 300001") {
		t.Errorf("after SIGINT it says:\n%s", log)
	}
	whole := append(content, []byte("the rest")...)
	file := filepath.Join(t.TempDir(), "whole")
	check(t, os.WriteFile(file, whole, 0o644))
	strake(t, c, 0, "volume", "import", "int", file, "--skip", "300001") // the lease is free
	if !bytes.Equal(exported(t, c, "int", len(whole)), whole) {
		t.Error("after going on: the volume holds other bytes")
	}
}

// TestAnImportThatFailsSaysWhatIsDurable: its writer is deposed in the middle.
func TestAnImportThatFailsSaysWhatIsDurable(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 3})
	strake(t, c, 0, "volume", "create", "v", "--size", "64MiB")
	r, w, err := os.Pipe()
	check(t, err)
	defer w.Close()
	out := &lines{}
	p, err := c.Spawn("import", cluster.Program{Stdin: r, Stdout: out, Args: []string{"volume", "import", "v", "-", "--flush-every", "4MiB", "-o", "json"}})
	check(t, err)
	r.Close()
	chunk := make([]byte, 4<<20)
	_, err = w.Write(chunk)
	check(t, err)
	eventually(t, "the first flush", 60*time.Second, func() bool { return strings.Contains(out.String(), `{"flushed_bytes":4194304}`) })
	thief := open(t, c, "v", forced)
	_, err = thief.WriteAt(chunk[:4096], 0)
	check(t, err)
	go func() {
		for i := 0; i < 8; i++ {
			if _, err := w.Write(chunk); err != nil {
				return // it has ended
			}
		}
		w.Close()
	}()
	if err := p.Wait(30 * time.Second); err == nil {
		t.Fatal("a deposed importer ended with exit code 0")
	}
	if log := p.Tail(5); !strings.Contains(log, "4194304 bytes are durable") || !strings.Contains(log, "--skip 4194304") {
		t.Errorf("it says:\n%s", log)
	}
}
