package ctl

import (
	"strings"
	"testing"
	"time"

	"strake/client"
)

// TestAdmissionCountsOnWhatWasCalibrated measures the emulated devices of a cell that
// nobody used, and reserves what they were found to do, less one server.
func TestAdmissionCountsOnWhatWasCalibrated(t *testing.T) {
	const device = 40 << 20
	c := startUpkeepCell(t, 3, "read=60MiB,write=40MiB,iops=4000,latency=100us", nil)
	cell, err := client.Dial(t.Context(), client.Config{Addresses: c.address})
	must(t, err)
	defer cell.Close()
	list, err := cell.Calibrate(t.Context(), 0, 2*time.Second)
	must(t, err)
	if len(list) != 3 {
		t.Fatalf("%d devices were measured: %+v", len(list), list)
	}
	for _, d := range list {
		if d.Error != "" || d.WriteBytes > device*11/10 || d.TookMs > 10_000 {
			t.Errorf("%+v: writes of an emulated device go at %d", d, device)
		}
	}
	c.eventually("the figures are known", func() string {
		servers, err := cell.Servers(t.Context())
		must(t, err)
		for _, s := range servers {
			if c := s.Devices[0].Capacity; c == nil || c.How != "calibrated" || c.Age > time.Minute {
				return "not yet: " + capacityText(c)
			}
		}
		return ""
	})
	ask := client.Reservation{Job: "j", Class: "training", Rate: client.Rate{Bytes: 3 * device}, TTL: time.Hour}
	got, err := cell.Reserve(t.Context(), ask, true)
	if err != nil || got.Fits || len(got.Devices) != 3 || got.Devices[0].How != "calibrated" || got.Unmeasured != 0 {
		t.Errorf("three devices' worth, less one server: %+v, %v", got, err)
	}
	ask.Rate.Bytes = got.Capacity.Bytes / 2
	if got, err = cell.Reserve(t.Context(), ask, false); err != nil || !got.Fits {
		t.Errorf("half of the capacity: %+v, %v", got, err)
	}
	var out strings.Builder
	calibrationTable(&out, append(list, client.Calibration{Server: 9, Error: "away"}))
	if text := out.String(); strings.Count(text, "MiB/s") != 6 || !strings.Contains(text, "away") {
		t.Errorf("the table:\n%s", text)
	}
}
