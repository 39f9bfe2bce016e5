package containers

import (
	"testing"

	"strake/e2e/container"
	"strake/e2e/fault"
)

// TestADeviceThatIsFull fills the file system below one of seven chunk servers
// with another's files: the writer goes on without it, and with it once there is
// room again.
func TestADeviceThatIsFull(t *testing.T) {
	images(t)
	dir, unmount, err := fault.SmallDisk(t.Context(), t.TempDir(), 400<<20)
	if err != nil {
		t.Skipf("*** SKIPPED: no file systems in files here: %v ***", err)
	}
	t.Cleanup(func() { must(t, unmount()) })
	c := start(t, container.Options{Meta: 1, Chunkds: 7, Dirs: map[string]string{"chunkd-1": dir}})
	l, fight := startLoad(t, c), startFight(t, c)
	c.Note("fill the device of chunkd-1")
	must(t, fault.Fill(dir))
	l.progress(300)
	must(t, fault.Free(dir))
	l.progress(100)
	c.WaitUp()
	l.end()
	fight.progress(t, 4)
	fight.check(t)
}
