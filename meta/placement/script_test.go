package placement

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// TestScripts runs the golden scripts: `servers` adds servers in a domain,
// `set` changes a device, `place` places segments and shows the domains that
// they took, in order.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c Cluster
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			num := func(key string, otherwise uint64) uint64 {
				for _, a := range d.CmdArgs {
					if a.Key == key && len(a.Vals) > 0 {
						n, err := strconv.ParseUint(a.Vals[0], 0, 64)
						if err != nil {
							d.Fatalf(t, "%v", err)
						}
						return n
					}
				}
				return otherwise
			}
			switch d.Cmd {
			case "servers":
				return addServers(&c, d, int(num("count", 1)), int(num("devices", 1)), num("gib", 100))
			case "set":
				dev := &c.Devices[num("device", 1)-1]
				dev.Used, dev.Busy = num("used-gib", 0)<<30, uint16(num("busy", 0))
				dev.Up, dev.State = !d.HasArg("down"), state.DeviceState(num("state", 0))
				return ""
			case "place":
				req := Request{Geometry: layout.Geometry{K: uint8(num("k", 4)), M: uint8(num("m", 2))}, ShardLength: layout.ShardOffset(num("shard-gib", 1) << 30)}
				if d.HasArg("urgent") {
					req.Purpose = layout.ForNeed
				}
				if n := num("avoid", 0); n != 0 {
					req.AvoidServers = []layout.ServerID{layout.ServerID(n)}
				}
				return place(c, req, int(num("count", 1)))
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func addServers(c *Cluster, d *datadriven.TestData, count, devices int, gib uint64) string {
	prefix := ""
	for _, a := range d.CmdArgs {
		if a.Key == "domain" {
			prefix = a.Vals[0]
		}
	}
	servers := layout.ServerID(0)
	if n := len(c.Devices); n > 0 {
		servers = c.Devices[n-1].Server
	}
	for range count {
		servers++
		path := prefix
		if strings.HasSuffix(prefix, "/") {
			path = fmt.Sprintf("%sh%d", prefix, servers)
		}
		for range devices {
			c.Devices = append(c.Devices, Device{ID: layout.DeviceID(len(c.Devices) + 1), Server: servers, Domain: path, Total: gib << 30, Up: true})
		}
	}
	c.Single = servers == 1
	return fmt.Sprintf("%d devices on %d servers\n", len(c.Devices), servers)
}

func place(c Cluster, req Request, count int) string {
	var b strings.Builder
	p, rnd := New(c), rand.New(rand.NewSource(1))
	for range count {
		devices, g, err := p.Place(req, rnd)
		if err != nil {
			return fmt.Sprintf("%v: %v\n  hint: %s\n", errs.KindOf(err), err, errs.HintOf(err))
		}
		var where []string
		for _, id := range devices {
			d := c.Devices[id-1]
			where = append(where, fmt.Sprintf("%d(%d %s)", id, d.Server, d.Domain))
		}
		slices.Sort(where)
		fmt.Fprintf(&b, "%v on %s\n", g, strings.Join(where, " "))
	}
	return b.String()
}
