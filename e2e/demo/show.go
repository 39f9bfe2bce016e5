package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strake/e2e/cluster"
)

const (
	volumeSize = 2 << 30
	// mark is where in the second volume the new writer writes, past the import.
	mark = volumeSize - 4096
)

// show is the demo's course: what it did and found so far.
type show struct {
	cell    *cluster.Cluster
	options options

	bytes int64  // of the imported tree
	sum   string // its SHA-256

	imported, exported, degraded, late transfer
	healthyReads, degradedReads        latency
}

// perform goes through all steps. The first one that fails ends it.
func (s *show) perform(ctx context.Context) error {
	begun := time.Now()
	for _, step := range []func(context.Context) error{
		s.importTree, s.exportTree, s.loseServers, s.writeMeanwhile, s.killImporter, s.bringBack, s.measure,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\nEvery byte was right. That took %.0f s.\n\n", time.Since(begun).Seconds())
	return s.table(ctx)
}

// importTree makes a 4+2 volume and fills it with a real tree.
func (s *show) importTree(ctx context.Context) error {
	say("a 4+2 volume takes in %s, as a tar stream", s.options.source)
	if err := s.create(ctx, "demo"); err != nil {
		return err
	}
	t, err := s.importTo(ctx, "demo", s.options.source)
	s.imported, s.bytes, s.sum = t, t.bytes, t.sum
	return err
}

func (s *show) create(ctx context.Context, name string) error {
	return s.strake(ctx, "volume", "create", name, "--size", fmt.Sprint(volumeSize), "--k", "4", "--m", "2")
}

// exportTree reads it back.
func (s *show) exportTree(ctx context.Context) (err error) {
	say("reading it back")
	s.exported, err = s.compare(ctx, "demo", s.bytes, s.sum)
	return err
}

// loseServers kills two chunk servers and reads everything again.
func (s *show) loseServers(ctx context.Context) (err error) {
	say("two of the six chunk servers are killed (SIGKILL); everything is read again, decoded from the other four")
	if err := errors.Join(s.cell.Chunkds[1].Kill(), s.cell.Chunkds[4].Kill()); err != nil {
		return err
	}
	if s.degraded, err = s.compare(ctx, "demo", s.bytes, s.sum); err != nil {
		return err
	}
	s.degradedReads, err = s.randomReads(ctx)
	return err
}

// writeMeanwhile writes while the two servers are gone.
func (s *show) writeMeanwhile(ctx context.Context) error {
	at := (s.bytes + 4095) / 4096 * 4096
	say("with the two still gone, another %s is written behind it", text(lateBytes))
	t, err := s.importNoise(ctx, "demo", at)
	if err != nil {
		return err
	}
	s.late = t
	_, err = s.compareAt(ctx, "demo", at, t.bytes, t.sum)
	return err
}

// killImporter kills an importer in the middle, takes the volume over and looks
// for every byte that the importer had called durable.
func (s *show) killImporter(ctx context.Context) error {
	say("an importer into a second volume is killed in the middle (SIGKILL)")
	if err := s.create(ctx, "second"); err != nil {
		return err
	}
	flushed, err := s.importAndKill(ctx, "second")
	if err != nil {
		return err
	}
	fmt.Printf("    it had said that %d bytes (%s) are durable\n", flushed, text(flushed))
	say("a new writer takes the volume over; all that was durable is compared with the first volume's copy")
	if err := s.strakeIn(ctx, "taken over", "volume", "import", "second", "-", "--offset", fmt.Sprint(mark), "--force"); err != nil {
		return err
	}
	want, err := s.exportSum(ctx, "demo", 0, flushed)
	if err != nil {
		return err
	}
	_, err = s.compare(ctx, "second", flushed, want.sum)
	return err
}

// bringBack starts the two servers again.
func (s *show) bringBack(ctx context.Context) error {
	say("the two servers come back; everything is read once more")
	if err := errors.Join(s.cell.Chunkds[1].Restart(), s.cell.Chunkds[4].Restart()); err != nil {
		return err
	}
	if err := s.cell.WaitHealthy(ctx); err != nil {
		return err
	}
	_, err := s.compare(ctx, "demo", s.bytes, s.sum)
	return err
}

// measure reads 4 KiB blocks at random.
func (s *show) measure(ctx context.Context) (err error) {
	say("4 KiB reads at random places, one at a time")
	s.healthyReads, err = s.randomReads(ctx)
	return err
}
