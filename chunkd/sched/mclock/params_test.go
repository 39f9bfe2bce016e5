package mclock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
)

func TestBadParametersAreRefused(t *testing.T) {
	for _, c := range []struct {
		p    Params
		says string
	}{
		{Params{Reservation: Rate{Bytes: -1}}, "reservation of -1"},
		{Params{Limit: Rate{Ops: -5}}, "limit of 0 bytes/s, -5"},
		{Params{Reservation: Rate{Bytes: 2}, Limit: Rate{Bytes: 1}}, "below the reservation"},
		{Params{Reservation: Rate{Ops: 2}, Limit: Rate{Ops: 1}}, "below the reservation"},
		{Params{Limit: Rate{Bytes: 1 << 51}}, "want at most"},
		{Params{Reservation: Rate{Ops: 1 << 40}}, "want at most"},
		{Params{Weight: -1}, "weight -1"},
		{Params{Weight: qos.MaxWeight + 1}, "weight 10001"},
		{Params{Target: -time.Second}, "latency target"},
		{Params{Target: time.Nanosecond}, "latency target"},
		{Params{Target: time.Hour}, "latency target"},
	} {
		core := New(Options{})
		for _, err := range []error{core.SetClass(0, one, c.p), core.SetFlow(0, Key{1, one}, c.p)} {
			if !errors.Is(err, errs.InvalidArgument) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: got %v, want an invalid argument: %s", c.p, err, c.says)
			}
		}
		if got := core.ParamsOf(Key{1, one}); got != Defaults(one) {
			t.Errorf("%+v was kept: %+v", c.p, got)
		}
	}
}

func TestDefaultsAreSound(t *testing.T) {
	for c := range 256 {
		if p := Defaults(layout.Class(c)); p.Check() != nil || p.Weight == 0 {
			t.Errorf("class %v: %+v", layout.Class(c), p)
		}
	}
	if i, b := Defaults(layout.ClassInference), Defaults(layout.ClassBackground); i.Weight <= b.Weight || i.Target == 0 {
		t.Errorf("inference %+v, background %+v", i, b)
	}
}

func TestOwnParametersAreBounded(t *testing.T) {
	c := New(Options{Flows: 2})
	for tenant := range layout.TenantID(3) {
		err := c.SetFlow(0, Key{tenant, one}, Params{Weight: 7})
		if (err == nil) != (tenant < 2) || err != nil && !errors.Is(err, errs.Overloaded) {
			t.Errorf("tenant %d: %v", tenant, err)
		}
	}
	c.ResetFlow(0, Key{0, one})
	if err := c.SetFlow(0, Key{2, one}, Params{Weight: 7}); err != nil || c.ParamsOf(Key{2, one}).Weight != 7 {
		t.Errorf("after a reset: %v", err)
	}
}
