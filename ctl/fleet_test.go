package ctl

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/internal/discovery"
	"strake/internal/discovery/etcdtest"
)

// listCell lists a metadata server in etcd as one of a cell's.
func listCell(t *testing.T, etcd *etcdtest.Etcd, name, address string, id uint64) {
	t.Helper()
	at, err := discovery.Parse(etcd.URL(name))
	must(t, err)
	r, err := discovery.Register(at, address, slog.New(slog.DiscardHandler))
	must(t, err)
	r.SetCell(id)
	t.Cleanup(r.Close)
	for {
		cells, err := discovery.Cells(t.Context(), at)
		must(t, err)
		if slices.ContainsFunc(cells, func(c discovery.Cell) bool { return c.Name == name && c.ID == id && len(c.Addresses) == 1 }) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// runOK runs a command line that must succeed, and gives what it wrote.
func runOK(t *testing.T, line string) string {
	t.Helper()
	out, bad, code := run(strings.Fields(line)...)
	if code != 0 {
		t.Fatalf("strake %s: exit %d, %s%s", line, code, out, bad)
	}
	return out
}

// A volume is found by its name in whichever cell of the fleet has it; a cell that
// does not answer hides nothing and is never taken for one that says no.
func TestAVolumeIsFoundAcrossTheCellsOfAFleet(t *testing.T) {
	etcd := etcdtest.Start(t, "http")
	fleet := "etcd://" + etcd.Host
	east, west := devTest(t, 2), devTest(t, 2)
	listCell(t, etcd, "east", east, 0xea)
	runOK(t, "volume create only --size 4KiB --cell "+fleet) // one cell: no need to name it
	listCell(t, etcd, "west", west, 0x3e)
	runOK(t, "volume create both --size 4KiB --cell "+fleet+"/east")
	runOK(t, "volume create both --size 8KiB --cell "+fleet+"/west")
	runOK(t, "volume create far --size 12KiB --cell "+fleet+"/west")

	var ls struct {
		Cells []client.FleetCell `json:"cells"`
	}
	must(t, json.Unmarshal([]byte(runOK(t, "cell ls -o json --cell "+fleet)), &ls))
	if len(ls.Cells) != 2 || ls.Cells[0].Name != "east" || ls.Cells[0].Volumes != 2 || ls.Cells[0].ServersUp != 2 || ls.Cells[0].Health != "healthy" ||
		ls.Cells[1].Name != "west" || ls.Cells[1].Volumes != 2 || ls.Cells[1].ID != "000000000000003e" {
		t.Errorf("cell ls: %+v", ls.Cells)
	}
	if out := runOK(t, "volume show far -o json --cell "+fleet); !strings.Contains(out, "12288") {
		t.Errorf("volume show far: %s", out)
	}
	for _, line := range []string{"snapshot create far@a", "snapshot show far@a", "snapshot create far@b", "snapshot ls far", "snapshot diff far@a far@b",
		"snapshot rm far@b --yes", "snapshot rollback far@a --yes", "volume clone far@a near", "volume show near",
		"tag create far@t", "tag hold far@t --by me", "tag ls far", "tag release far@t --by me", "tag verify far@t"} {
		runOK(t, line+" --cell "+fleet)
	}
	refusedAll(t, fleet, []refusal{
		{"snapshot create both@a", "invalid-argument", "cells east, west each have one"},
		{"snapshot show nowhere@a", "not-found", "none of the fleet's 2 cells has it"},
		{"volume show both", "invalid-argument", "cells east, west each have one"},
		{"volume show nowhere", "not-found", "none of the fleet's 2 cells has it"},
		{"volume create new --size 4KiB", "invalid-argument", "etcd has 2: east, west"},
		{"status", "invalid-argument", "etcd has 2: east, west"},
	})
	listCell(t, etcd, "south", "127.0.0.1:1", 0x50)
	refusedAll(t, fleet, []refusal{{"volume show nowhere", "unavailable", "south: "}})
	if out := runOK(t, "volume show only -o json --cell "+fleet); !strings.Contains(out, "4096") {
		t.Errorf("volume show only, with a cell that does not answer: %s", out)
	}
	if out := runOK(t, "cell ls --cell "+fleet); !strings.Contains(out, "unreachable") || !strings.Contains(out, "! south: ") {
		t.Errorf("cell ls with a cell that does not answer: %s", out)
	}
}
