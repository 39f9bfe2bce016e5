package qos

import (
	"math/rand/v2"
	"testing"
)

// TestPartsAddUpAndNobodyGetsNothing for random totals and demands.
func TestPartsAddUpAndNobodyGetsNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		demand := make([]int64, 1+rnd.IntN(40))
		for i := range demand {
			if rnd.IntN(3) > 0 {
				demand[i] = rnd.Int64N(1 << rnd.IntN(50))
			}
		}
		n := int64(len(demand))
		total := n + rnd.Int64N(1<<rnd.IntN(50))
		sum := int64(0)
		for i, p := range Divide(total, demand) {
			if sum += p; p < max(1, total/n/floorPart) {
				t.Fatalf("%d among %v: device %d gets %d", total, demand, i, p)
			}
		}
		if sum != total {
			t.Fatalf("%d among %v: the parts add up to %d", total, demand, sum)
		}
	}
}

func TestPartsFollowDemand(t *testing.T) {
	got := Divide(1000, []int64{900, 100, 0, 0})
	if got[0] < 880 || got[0] > 900 || got[1] < 100 || got[1] > 110 || got[2] != 5 {
		t.Errorf("%v", got)
	}
	if even := Divide(1000, make([]int64, 4)); even[0] != 250 || even[3] != 250 {
		t.Errorf("while nobody asks: %v", even)
	}
	if none := Divide(0, []int64{5}); none[0] != 0 || len(Divide(5, nil)) != 0 {
		t.Error("nothing is something")
	}
}

func TestClassesThatCantBeMeantAreRefused(t *testing.T) {
	good := Class{Number: 20, Name: "c"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Class){
		"number 0":     func(c *Class) { c.Number = 0 },
		"no name":      func(c *Class) { c.Name = "" },
		"a bad name":   func(c *Class) { c.Name = "a b" },
		"weight":       func(c *Class) { c.Params.Weight = -1 },
		"SLO of 1 ns":  func(c *Class) { c.SLO.P99 = 1 },
		"SLO of bytes": func(c *Class) { c.SLO.P99, c.SLO.Bytes = MinSLO, -1 },
		"bytes alone":  func(c *Class) { c.SLO.Bytes = 4096 },
	} {
		c := good
		if spoil(&c); c.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, c := range Builtin() {
		if err := c.Check(); err != nil || !IsBuiltin(c.Number) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
