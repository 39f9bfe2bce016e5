package e2e

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
)

// TestAWriterSaysWhichServersItWaitsFor: with fewer than m+1 servers an import stands
// still and says why; with one more it goes on by itself and ends well.
func TestAWriterSaysWhichServersItWaitsFor(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 3})
	strake(t, c, 0, "volume", "create", "v", "--size", "64MiB", "--k", "1", "--m", "2")
	for _, p := range c.Chunkds[:2] {
		check(t, p.Kill())
	}
	check(t, c.WaitStatus(t.Context(), "short of servers", func(s client.CellStatus) bool { return s.ServersDown == 2 }))
	file := filepath.Join(t.TempDir(), "in")
	content := make([]byte, 5<<20)
	rand.Read(content)
	check(t, os.WriteFile(file, content, 0o644))
	p, err := c.Spawn("import", cluster.Program{Args: []string{"volume", "import", "v", file}})
	check(t, err)
	eventually(t, "it says what it waits for", 60*time.Second, func() bool {
		log := p.Tail(20)
		return strings.Contains(log, "write v has waited for") && strings.Contains(log, "3 are needed for m=2") || !p.Running()
	})
	for _, p := range c.Chunkds[:2] {
		check(t, p.Restart())
	}
	check(t, p.Wait(60*time.Second))
	if string(exported(t, c, "v", len(content))) != string(content) {
		t.Error("the volume holds other bytes")
	}
}

// TestAMetadataServiceThatFallsSilentIsNamed: to who has dialled before and calls.
func TestAMetadataServiceThatFallsSilentIsNamed(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 2})
	told := make(chan client.Waiting, 64)
	cell, err := client.Dial(t.Context(), client.Config{Addresses: c.Cell, Waiting: func(w client.Waiting) { told <- w }})
	check(t, err)
	defer cell.Close()
	check(t, c.Metas[0].Pause())
	created := make(chan error, 1)
	go func() {
		_, err := cell.CreateVolume(t.Context(), "v", client.VolumeOptions{Size: 1 << 20})
		created <- err
	}()
	for w := range told {
		if w.Op == "create volume v" {
			if !strings.Contains(w.Reason, c.Cell) || !strings.Contains(w.Reason, "no answer within") || w.For < 5*time.Second {
				t.Errorf("told %+v", w)
			}
			break
		}
	}
	check(t, c.Metas[0].Resume())
	check(t, <-created)
}
