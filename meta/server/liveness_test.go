package server

import (
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// TestWhatADrainedDeviceSaysIsRecorded: that it went down, and its figures; but not
// that it is up, which would end the drain.
func TestWhatADrainedDeviceSaysIsRecorded(t *testing.T) {
	s := state.New()
	for i, c := range []state.Command{
		state.FormCell{Cell: 1},
		state.RegisterServer{UUID: layout.UUID{1}, Devices: []state.DeviceReport{{UUID: layout.UUID{2}, Total: 1 << 30, Incarnation: 1}}},
		state.ChangeDevices{Devices: []deviceID{1}, Change: state.DrainDevice},
	} {
		if r := s.Apply(uint64(i+1), c); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	l := newLiveness(time.Second)
	for _, c := range []struct {
		said    state.DeviceUpdate
		records bool
	}{
		{state.DeviceUpdate{Device: 1, Total: 1 << 30, State: state.DeviceUp}, false},
		{state.DeviceUpdate{Device: 1, Total: 1 << 30, State: state.DeviceLimping}, false},
		{state.DeviceUpdate{Device: 1, Total: 1 << 30, State: state.DeviceDown}, true},
		{state.DeviceUpdate{Device: 1, Total: 1 << 30, Used: 1 << 29, State: state.DeviceUp}, true},
	} {
		l.report(1, []saying{{DeviceUpdate: c.said}})
		if got := l.changed(s.View(), func(*state.Device) (bool, string) { return false, "" }, 8); (len(got) == 1) != c.records {
			t.Errorf("said %+v, recorded %+v", c.said, got)
		}
	}
}
