package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"strake/client"
	"strake/e2e/workload"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	notedBlocks = 4096 // of a volume whose writer is killed, but for one
	notedMost   = 16   // blocks of one of its writes
	notedLeast  = 20   // flushed operations before it may be killed
)

// oneWriter has a process write to a new volume and kills it. Then this process
// opens the volume as soon as it may, writes one block durably, and compares the
// volume with what the dead writer had noted as flushed.
func (b *bench) oneWriter(ctx context.Context, g *Gap, i int) error {
	j := job{Cell: b.target.address, Volume: fmt.Sprintf("%s-killed-%d", b.volumeName(), i), Size: (notedBlocks + 1) * layout.BlockSize, Seed: b.Seed + uint64(i)}
	if err := b.create(ctx, j.Volume, j.Size); err != nil {
		return err
	}
	notes := filepath.Join(b.target.dir, j.Volume+".notes")
	killed, err := b.writeUntilKilled(ctx, j, notes)
	if err != nil {
		return err
	}
	v, err := b.takeOver(ctx, j.Volume)
	if err != nil {
		return err
	}
	if _, err = v.WriteAtContext(ctx, make([]byte, layout.BlockSize), notedBlocks*layout.BlockSize); err == nil {
		err = v.Flush(ctx)
	}
	g.Backs = append(g.Backs, rounded(1000*time.Since(killed).Seconds()))
	if err == nil {
		err = compareNotes(v, j, notes)
	}
	if closeErr := v.CloseContext(ctx); err == nil {
		err = closeErr
	}
	return err
}

// writeUntilKilled lets a worker write for a moment, kills it and tells when.
func (b *bench) writeUntilKilled(ctx context.Context, j job, notes string) (killed time.Time, err error) {
	h, err := b.crew.hire()
	if err != nil {
		return killed, err
	}
	defer h.dismiss()
	ended := make(chan error, 1)
	go func() {
		_, err := h.do(ctx, order{Do: orderNote, Job: &j, Notes: notes})
		ended <- err
	}()
	for late := time.Now().Add(time.Duration(b.Seconds * float64(time.Second))); ; {
		if _, flushed := progress(notes); flushed >= notedLeast && time.Now().After(late) {
			killed = time.Now()
			_ = h.cmd.Process.Kill()
			<-ended
			return killed, nil
		}
		select {
		case err := <-ended:
			return killed, errs.Wrap(err, "write until killed")
		case <-time.After(gapPoll):
		}
	}
}

// takeOver opens a volume for writing once the dead writer's session is over.
func (b *bench) takeOver(ctx context.Context, name string) (*client.Volume, error) {
	for {
		v, err := b.target.cell.Open(ctx, name, client.OpenOptions{Write: true})
		if errs.KindOf(err) != errs.LeaseHeld {
			return v, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(gapPoll):
		}
	}
}

// note is the worker's side: it writes to a volume until it is killed, and notes in
// a file what it began and what is durable.
func note(ctx context.Context, o order) error {
	f, err := os.Create(o.Notes)
	if err != nil {
		return errs.As(err, errs.Unavailable, "write notes")
	}
	defer f.Close()
	cell, err := client.Dial(ctx, client.Config{Addresses: o.Job.Cell})
	if err != nil {
		return err
	}
	defer cell.Close()
	v, err := cell.Open(ctx, o.Job.Volume, client.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	return workload.Write(ctx, v, notedPlan(*o.Job), f)
}

func notedPlan(j job) workload.Plan {
	return workload.Plan{Volume: j.Volume, Seed: j.Seed, First: 1, Blocks: notedBlocks, Most: notedMost}
}

func progress(notes string) (began, flushed uint64) {
	text, _ := os.ReadFile(notes) // not there yet: nothing was done
	return workload.Progress(string(text))
}

// compareNotes checks that all that was flushed is there, and nothing that was not
// written.
func compareNotes(v *client.Volume, j job, notes string) error {
	began, flushed := progress(notes)
	err := workload.NewHistory(j.Volume, notedBlocks).Crashed(v, notedPlan(j), flushed, began)
	return errs.As(err, errs.Corrupt, "look for what the dead writer had flushed")
}
