package telemetry

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBytesOnTheWireCountOnce: a bond, a bridge and a container's end carry what their
// hardware carries. Where no hardware shows, all but loopback count.
func TestBytesOnTheWireCountOnce(t *testing.T) {
	root := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, speed := range map[string]string{"lo": "", "bond0": "20000", "docker0": "-1", "veth1": "10000"} {
		put(name+"/statistics/rx_bytes", "100\n")
		put(name+"/statistics/tx_bytes", "10\n")
		put(name+"/speed", speed)
	}
	if got := readNetwork(root); got != (Network{In: 300, Out: 30, Link: 20e9 / 8}) {
		t.Errorf("without hardware: %+v", got)
	}
	for _, name := range []string{"eth0", "eth1"} {
		put(name+"/statistics/rx_bytes", "50\n")
		put(name+"/statistics/tx_bytes", "5\n")
		put(name+"/speed", "10000\n")
		put(name+"/device/vendor", "0x1")
	}
	if got := readNetwork(root); got != (Network{In: 100, Out: 10, Link: 10e9 / 8}) {
		t.Errorf("two cards: %+v", got)
	}
	if got := readNetwork(filepath.Join(root, "none")); got != (Network{}) {
		t.Errorf("nothing to read: %+v", got)
	}
}
