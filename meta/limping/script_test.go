package limping

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"strake/internal/layout"
)

// TestScripts runs the golden scripts. `cell devices=n` begins a term with a device
// on each server, `limps=i` of them on record; `at` sets the clock; `say` and
// `measure` bring evidence, the latter so many times, each half a second later;
// `look` gives the new verdicts.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.d = d
			return s.run()
		})
	})
}

type script struct {
	t       *testing.T
	d       *datadriven.TestData
	j       *Judge
	devices []Device
	now     time.Duration
}

func (s *script) run() string {
	switch s.d.Cmd {
	case "cell":
		s.j, s.devices, s.now = New(DefaultLimits()), nil, time.Second
		for i := range s.num("devices", 0) {
			s.devices = append(s.devices, Device{ID: layout.DeviceID(i + 1), Server: layout.ServerID(i + 1), Limps: i+1 == s.num("limps", 0)})
		}
		return s.look()
	case "at":
		s.now = s.duration("t")
	case "say":
		s.j.Say(uint64(s.num("who", 1)), s.device(), Word{Took: s.duration("took"), Others: s.duration("others"), Sound: s.d.HasArg("sound")}, s.now)
	case "measure":
		for range s.num("times", 1) {
			s.measure()
		}
	case "look":
		return s.look()
	case "probe":
		var list []string
		for _, d := range s.devices {
			if s.j.Suspected(d.ID) {
				list = append(list, fmt.Sprint(d.ID))
			}
		}
		return strings.Join(list, " ") + "\n"
	default:
		s.d.Fatalf(s.t, "unknown command %q", s.d.Cmd)
	}
	return ""
}

// measure is one heartbeat of every server: the device differs, the others are
// quick.
func (s *script) measure() {
	s.now += 500 * time.Millisecond
	for _, d := range s.devices {
		m := Measure{Read: 200 * time.Microsecond, Write: 300 * time.Microsecond, Bytes: uint64(s.num("others-mib", 1)) << 20}
		if d.ID == s.device() {
			m = Measure{Read: s.duration("read"), Write: s.duration("write"), Bytes: uint64(s.num("mib", 1)) << 20}
		}
		s.j.Measured(d.ID, m, s.now)
	}
}

func (s *script) look() string {
	var b strings.Builder
	for _, v := range s.j.Look(s.devices, s.now) {
		s.devices[v.Device-1].Limps = v.Limps
		fmt.Fprintf(&b, "%v: device %d limps: %v: %s\n", s.now, v.Device, v.Limps, v.Why)
	}
	return b.String()
}

func (s *script) device() layout.DeviceID { return layout.DeviceID(s.num("device", 0)) }

func (s *script) num(key string, otherwise int) int {
	n := otherwise
	s.d.MaybeScanArgs(s.t, key, &n)
	return n
}

func (s *script) duration(key string) time.Duration {
	text := "0s"
	s.d.MaybeScanArgs(s.t, key, &text)
	v, err := time.ParseDuration(text)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return v
}
