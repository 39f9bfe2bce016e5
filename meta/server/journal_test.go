package server

import (
	"testing"

	"strake/internal/layout"
	"strake/meta/state"
)

// TestEventsAreToldForPeople holds one event of each shape to its line.
func TestEventsAreToldForPeople(t *testing.T) {
	names := func(id layout.VolumeID) string {
		if id == 3 {
			return "team/data"
		}
		return ""
	}
	for _, c := range []struct {
		event state.Event
		want  string
	}{
		{state.LeaseTaken{Volume: 3, Epoch: 2, Session: 9}, "volume 3 (team/data), epoch 2, session 9"},
		{state.VolumePurged{Volume: 4}, "volume 4"},
		{state.ServerRegistered{Server: 1, New: true}, "server 1, new"},
		{state.ServerRegistered{Server: 1}, "server 1"},
		{state.RecoveryBlocked{Volume: 3, Epoch: 2, Reason: "shard 1 is silent"}, "volume 3 (team/data), epoch 2, reason shard 1 is silent"},
		{state.DeviceStateChanged{Device: 2, Old: state.DeviceUp, New: state.DeviceDown}, "device 2, old up, new down"},
		{state.ShardReplaced{Shard: layout.ShardKey{Segment: 7, Shard: 1}, Old: state.Placement{Device: 2, Generation: 1}, New: state.Placement{Device: 5, Generation: 2}},
			"shard 7/1, old device 2, old generation 1, new device 5, new generation 2"},
	} {
		if got := told(c.event, names); got != c.want {
			t.Errorf("%T: got %q, want %q", c.event, got, c.want)
		}
	}
}
