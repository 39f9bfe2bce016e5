package ctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/client"
)

// asked runs a verb that must succeed and reads its JSON.
func asked(t *testing.T, cell string, into any, args ...string) {
	t.Helper()
	out, bad, code := run(append(args, "--cell", cell, "-o", "json")...)
	if code != 0 {
		t.Fatalf("%q: exit %d, %s", args, code, bad)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%q: %v in %s", args, err, out)
	}
}

// TestClassesAndReservationsByHand: an objective set at run time is judged, a class
// that was added serves a volume, a reservation is kept once the devices were
// measured, and the commands that show it all agree.
func TestClassesAndReservationsByHand(t *testing.T) {
	cell, dir := devTest(t, 2), t.TempDir()
	var class client.Class
	asked(t, cell, &class, "class", "add", "nightly", "--weight", "30", "--slo", "10s")
	if class.Number < 16 || class.Weight != 30 || class.SLO != 10*time.Second {
		t.Fatalf("%+v", class)
	}
	asked(t, cell, &class, "class", "set", "nightly", "--slo-size", "1MiB")
	if class.Weight != 30 || class.SLOBytes != 1<<20 {
		t.Errorf("%+v, want what was not given kept", class)
	}
	in, trace := filepath.Join(dir, "in"), filepath.Join(dir, "trace")
	must(t, os.WriteFile(in, bytes.Repeat([]byte("0123456789abcdef"), 8<<16), 0o644))
	var v client.VolumeInfo
	if asked(t, cell, &v, "volume", "create", "v", "--size", "64MiB", "--class", "nightly"); v.Class != "nightly" {
		t.Errorf("the new volume says that it is of class %s", v.Class)
	}
	// The chunk servers know the class once the objective is judged.
	var kept []attainment
	deadline := time.Now().Add(30 * time.Second)
	for len(kept) == 0 || kept[0].Judged5m == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("nothing was judged: %+v", kept)
		}
		if _, bad, code := run("volume", "import", "v", in, "--trace", trace, "--cell", cell); code != 0 {
			t.Fatalf("import: %s", bad)
		}
		asked(t, cell, &kept, "slo")
	}
	if kept[0].Class != "nightly" || kept[0].Kept1h != 1 || !kept[0].Met {
		t.Errorf("%+v", kept)
	}
	traceHas(t, trace, class.Number)

	var got client.Admission
	for said := ""; !got.Fits; {
		if time.Now().After(deadline) {
			t.Fatalf("nothing can be reserved: %s", said)
		}
		out, bad, code := run("reserve", "create", "job-1", "--class", "nightly", "--bandwidth", "4KiB", "--ttl", "1h", "--cell", cell, "-o", "json")
		if said = bad; code == 0 {
			must(t, json.Unmarshal([]byte(out), &got))
		}
	}
	var again client.Admission
	asked(t, cell, &again, "reserve", "create", "job-1", "--class", "nightly", "--bandwidth", "4KiB", "--ttl", "1h")
	if again.Reservation.ID != got.Reservation.ID || got.Reserved.Bytes != 4096 {
		t.Errorf("an equal repeat gives %+v, the first %+v", again, got)
	}
	for _, refused := range []string{"reserve create job-1 --class nightly --bandwidth 5KiB", "reserve create job-2 --bandwidth 900TiB --dry-run", "class rm nightly --yes"} {
		if _, bad, code := run(append(strings.Fields(refused), "--cell", cell)...); code != exitFailed {
			t.Errorf("%s: exit %d, %s", refused, code, bad)
		}
	}
	var e explanation
	asked(t, cell, &e, "explain", "class", "nightly", "--window", "200ms")
	if len(e.Reasons) == 0 || e.Class.Class != "nightly" {
		t.Errorf("%+v", e)
	}
	var r rates
	asked(t, cell, &r, "top", "--interval", "200ms", "--rounds", "1")
	if len(r.Servers) != 2 || len(r.Classes) == 0 {
		t.Errorf("%+v", r)
	}
	asked(t, cell, &map[string]string{}, "reserve", "rm", "job-1")
}

// traceHas wants writes of a class in a trace.
func traceHas(t *testing.T, path string, class uint32) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	written, flushes := int64(0), 0
	_, err = client.ReadTrace(f, func(r client.TraceRecord) error {
		switch {
		case r.Op == client.TraceWrite && uint32(r.Class) == class && r.Took > 0:
			written += r.Length
		case r.Op == client.TraceFlush:
			flushes++
		}
		return nil
	})
	if err != nil || written != 8<<20 || flushes == 0 {
		t.Errorf("%d bytes written and %d flushes in the trace, %v", written, flushes, err)
	}
}
