package ctl

import (
	"bytes"
	"strings"
	"testing"

	"strake/client"
)

// TestWhatWasNeverCountedIsNotToldAsNothing: before a volume's first map root nobody
// knows what of it is live, nor what it shares with the snapshot that it began as.
func TestWhatWasNeverCountedIsNotToldAsNothing(t *testing.T) {
	v := client.VolumeInfo{Name: "w", Size: 1 << 30, K: 4, M: 2, State: "idle", Origin: "v@one", StoredBytes: 1 << 20, ReservedBytes: 1 << 20}
	var uncounted, counted bytes.Buffer
	volumeTable(&uncounted, []client.VolumeInfo{v}, false)
	volumePairs(&uncounted, v)
	if out := uncounted.String(); strings.Contains(out, "0 B") || !strings.Contains(out, "v@one") {
		t.Errorf("without a root:\n%s", out)
	}
	v.MapRoot = 1
	volumeTable(&counted, []client.VolumeInfo{v}, false)
	volumePairs(&counted, v)
	if out := counted.String(); strings.Count(out, "0 B") != 4 { // live, in both; garbage; shared
		t.Errorf("with a root:\n%s", out)
	}
}
