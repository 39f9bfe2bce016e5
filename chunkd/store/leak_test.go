package store

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// TestCloseLeavesNoGoroutine runs in a process of its own: a device that failed
// in another test leaves Pebble's goroutines behind, on purpose (see index).
func TestCloseLeavesNoGoroutine(t *testing.T) {
	const key = "STRAKE_TEST_LEAK"
	if os.Getenv(key) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCloseLeavesNoGoroutine$") // #nosec G204
		cmd.Env = append(os.Environ(), key+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		return
	}
	defer goleak.VerifyNone(t)
	s := opened(t, formatted(t, newMem()))
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Append(unitOf(1, 5, 1, 0, 4096)))
	ok(t, s.Close())
}
