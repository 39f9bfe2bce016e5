package ctl

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"strake/chunkd"
)

// TestPacesOfUpkeepCanBeSet by flags, which the configuration file sets too.
func TestPacesOfUpkeepCanBeSet(t *testing.T) {
	for _, c := range []struct {
		args string
		want chunkd.Upkeep // the zero value: refused
	}{
		{"", chunkd.Upkeep{ScrubRate: 64 << 20, ScrubCycle: 7 * 24 * time.Hour}},
		{"--rebuild-rate 100MiB --scrub-rate 1GiB --scrub-cycle 48h", chunkd.Upkeep{RebuildRate: 100 << 20, ScrubRate: 1 << 30, ScrubCycle: 48 * time.Hour}},
		{"--scrub-cycle 0", chunkd.Upkeep{ScrubRate: 64 << 20, ScrubCycle: -1}},
		{"--scrub-cycle 1s", chunkd.Upkeep{}},
		{"--scrub-cycle -1h", chunkd.Upkeep{}},
		{"--scrub-rate 0", chunkd.Upkeep{}},
	} {
		u, f, got := newUpkeepFlags(), pflag.NewFlagSet("", pflag.ContinueOnError), chunkd.Upkeep{}
		u.add(f)
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		if err := u.into(&got); got != c.want || (err != nil) != (c.want == chunkd.Upkeep{}) {
			t.Errorf("%q: got %+v, %v; want %+v", c.args, got, err, c.want)
		}
	}
	file := writeConfig(t, "[chunkd]\nscrub-cycle = \"48h\"\n[meta]\nrebuild-after = \"30m\"\n")
	s := showConfig(t, "--config", file)
	for key, want := range map[string]string{"chunkd.scrub-cycle": "48h0m0s", "meta.rebuild-after": "30m0s"} {
		if got := s.Settings[key]; got != (setting{want, file}) {
			t.Errorf("%s: got %+v, want %s", key, got, want)
		}
	}
	if _, bad, code := run("meta", "serve", "--dir", t.TempDir(), "--listen", "127.0.0.1:0", "--rebuild-after", "1s"); code == 0 || !strings.Contains(bad, "--rebuild-after") {
		t.Errorf("rebuilds after a second: exit %d: %s", code, bad)
	}
}
