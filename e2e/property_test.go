package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/property"
)

// killed is a cell of processes for histories.
type killed struct{ c *cluster.Cluster }

// Dial implements property.Cell.
func (k killed) Dial(ctx context.Context) (*client.Cell, error) {
	return client.Dial(ctx, client.Config{Addresses: k.c.Cell, Tuning: client.Tuning{CleanEvery: 200 * time.Millisecond, MapHeaders: 200, CloseHeaders: 1}})
}

// Harm implements property.Cell: SIGKILL to a chunk server, or to the metadata server.
func (k killed) Harm(ctx context.Context, pick uint64) (heal func() error, err error) {
	victims := append(append([]*cluster.Process(nil), k.c.Chunkds...), k.c.Metas...)
	p := victims[int(pick)%len(victims)]
	heal = func() error { return errors.Join(p.Restart(), k.c.WaitHealthy(ctx)) }
	if err := p.Kill(); err != nil {
		return nil, err
	}
	if slices.Contains(k.c.Metas, p) { // the only one: nobody opens anything without it
		return func() error { return nil }, heal()
	}
	return heal, nil
}

var propertySeed = flag.Uint64("property.seed", 7, "the history of TestAnyHistoryReadsAsInAModelThroughProcesses")

// TestAnyHistoryReadsAsInAModelThroughProcesses: as the test of the same name without
// processes, with SIGKILL for a crash.
func TestAnyHistoryReadsAsInAModelThroughProcesses(t *testing.T) {
	steps := 80
	if testing.Short() {
		steps = 30
	}
	cell, tries := killed{start(t, cluster.Options{Chunkds: 4})}, 0
	run := func(ops []property.Op) error {
		tries++
		return property.Run(t.Context(), cell, fmt.Sprintf("h%d", tries), ops)
	}
	ops := property.Draw(*propertySeed, steps)
	if err := run(ops); err != nil {
		short, e := property.Shrink(ops, err, 20, run)
		t.Errorf("%v\nshrunk to %d operations, which fail with %v:\n%s\nlogs: %s", err, len(short), e, property.List(short), cell.c.Dir())
	}
}
