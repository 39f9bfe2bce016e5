package inprocess

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"strake/client"
	"strake/e2e/property"
)

var (
	propertySeed  = flag.Uint64("property.seed", 0, "carry out the history of this seed alone")
	propertySteps = flag.Int("property.steps", 400, "operations of a history")
)

// harmed is a cell for histories; power is cut at every second harm.
type harmed struct{ c *Cell }

// Dial implements property.Cell.
func (h harmed) Dial(context.Context) (*client.Cell, error) { return h.c.Dial(), nil }

// Harm implements property.Cell.
func (h harmed) Harm(_ context.Context, pick uint64) (heal func() error, err error) {
	s := h.c.Chunkds[int(pick/2)%len(h.c.Chunkds)]
	if pick%2 == 0 {
		s.Kill()
	} else {
		s.CutPower()
	}
	return func() error {
		s.Restart()
		return nil
	}, nil
}

// TestAnyHistoryReadsAsInAModel carries out random histories, with a writer that cleans
// by itself meanwhile, against arrays of bytes. A history that fails is shrunk.
func TestAnyHistoryReadsAsInAModel(t *testing.T) {
	first, last, steps := uint64(1), uint64(4), *propertySteps
	if testing.Short() {
		last, steps = 1, 150
	}
	if *propertySeed != 0 {
		first, last = *propertySeed, *propertySeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cell := harmed{Start(t, Options{Chunkds: 4, Client: attended, Seed: seed})}
			tries := 0
			run := func(ops []property.Op) error {
				tries++
				return property.Run(t.Context(), cell, fmt.Sprintf("h%d", tries), ops)
			}
			ops := property.Draw(seed, steps)
			if err := run(ops); err != nil {
				short, e := property.Shrink(ops, err, 60, run)
				t.Errorf("%v\nagain: -property.seed=%d -property.steps=%d\nshrunk to %d operations, which fail with %v:\n%s", err, seed, steps, len(short), e, property.List(short))
			}
		})
	}
}
