package limping

import (
	"math/rand/v2"
	"testing"
	"time"

	"strake/internal/layout"
)

// TestOneBadClientConvictsNobody lets a client say anything of devices that are
// quick, under as many sessions as it likes but one at a time.
func TestOneBadClientConvictsNobody(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		j, now := New(DefaultLimits()), time.Second
		var devices []Device
		for i := range 3 + r.IntN(20) {
			devices = append(devices, Device{ID: layout.DeviceID(i + 1), Server: layout.ServerID(i/2 + 1)})
		}
		for range 300 {
			now += time.Duration(r.IntN(2000)) * time.Millisecond
			j.Say(7, devices[r.IntN(len(devices))].ID, Word{Took: time.Minute, Others: time.Microsecond, Sound: r.IntN(9) == 0}, now)
			for _, d := range devices {
				j.Measured(d.ID, Measure{Read: time.Duration(1 + r.IntN(4e6)), Write: time.Duration(1 + r.IntN(4e6)), Bytes: r.Uint64N(1 << 28)}, now)
			}
			if list := j.Look(devices, now); len(list) > 0 {
				t.Fatalf("seed %d: %+v", seed, list)
			}
		}
	}
}

func TestTimesAreToldInThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 1389700: "1.39ms", 100274700: "100ms", 312499: "312µs", 2345678901: "2.35s"} {
		if got := round(d).String(); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

// TestEvidenceIsBounded floods a judge with words of ever new witnesses on devices
// that are there and on others.
func TestEvidenceIsBounded(t *testing.T) {
	j := New(DefaultLimits())
	devices := []Device{{ID: 1, Server: 1}, {ID: 2, Server: 2}}
	j.Look(devices, time.Second)
	for i := range uint64(10_000) {
		j.Say(i, layout.DeviceID(i%100), Word{Took: time.Second}, time.Second)
	}
	if len(j.devices) != 2 || len(j.devices[1].words) > maxWords {
		t.Errorf("%d devices, %d words", len(j.devices), len(j.devices[1].words))
	}
	if j.Look(devices[:1], time.Second); len(j.devices) != 1 {
		t.Errorf("%d devices are kept, one is there", len(j.devices))
	}
}

// TestVerdictsAlternate brings any evidence for a day: each verdict differs from the
// one before, and none convicts without evidence.
func TestVerdictsAlternate(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		j, now, limps := New(DefaultLimits()), time.Second, map[layout.DeviceID]bool{}
		devices := []Device{{ID: 1, Server: 1}, {ID: 2, Server: 2}, {ID: 3, Server: 3}, {ID: 4, Server: 4}, {ID: 5, Server: 5}}
		bad := layout.DeviceID(0)
		for range 2000 {
			now += time.Duration(r.IntN(1000)) * time.Millisecond
			if r.IntN(100) == 0 {
				bad = layout.DeviceID(r.IntN(6))
			}
			for _, d := range devices {
				m := Measure{Read: 100 * time.Microsecond, Write: 200 * time.Microsecond}
				if d.ID == bad {
					m.Write = time.Duration(r.IntN(100)) * time.Millisecond
				}
				j.Measured(d.ID, m, now)
			}
			for _, v := range j.Look(devices, now) {
				if v.Limps == limps[v.Device] || v.Why == "" {
					t.Fatalf("seed %d: %+v twice, or for no reason", seed, v)
				}
				if v.Limps && v.Device != bad {
					t.Fatalf("seed %d: device %d was convicted while %d was slow", seed, v.Device, bad)
				}
				limps[v.Device] = v.Limps
			}
		}
	}
}
