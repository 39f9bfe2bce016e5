package bench

import (
	"context"
	"fmt"
	"os"

	"strake/client"
	"strake/internal/errs"
)

const (
	readGen = 1
	// smallestWriteSet is the least that each writing client has, in bytes.
	smallestWriteSet = 16 * mib
)

// jobs gives each client of a case its job, on volumes that are ready, and what
// is to be done after the run.
func (b *bench) jobs(ctx context.Context, c Case) (jobs []*job, done func(context.Context) error, err error) {
	b.gen++
	done = func(context.Context) error { return nil }
	n := b.clientsOf(c)
	for i := range n {
		j := &job{Cell: b.target.address, Case: c, Size: b.Size, Seed: b.Seed, Client: i, Clients: n, Seconds: b.Seconds, Gen: readGen}
		if c.Write {
			j.Gen = b.gen + readGen
			j.Size = b.writeSet(n)
		}
		if j.Volume, err = b.volumeFor(ctx, c, i, j.Size); err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, j)
	}
	if c.Write && !c.Random {
		done = func(ctx context.Context) error { return b.remove(ctx, jobs) }
	}
	return jobs, done, nil
}

// writeSet is each writer's working set: half of the readers', shared out.
func (b *bench) writeSet(clients int) int64 {
	return max(smallestWriteSet, b.Size/2/int64(clients)/bodyBytes*bodyBytes)
}

// volumeFor gives the volume of one client of a case. All read one volume; a
// volume has one writer, so each has its own. Random writes go to one that is
// written already, sequential ones to a new one.
func (b *bench) volumeFor(ctx context.Context, c Case, i int, size int64) (string, error) {
	switch {
	case c.Cold:
		return b.readTag(ctx)
	case !c.Write:
		return b.readVolume(ctx)
	case !c.Random:
		name := fmt.Sprintf("%s-s%d-%d", b.volumeName(), i, b.gen)
		return name, b.create(ctx, name, size)
	}
	name := fmt.Sprintf("%s-w%d-%d", b.volumeName(), i, size/mib)
	return name, b.fill(ctx, name, size)
}

func (b *bench) volumeName() string {
	if b.Volume != "" {
		return b.Volume
	}
	return "bench"
}

// readVolume gives the volume that all read, written once.
func (b *bench) readVolume(ctx context.Context) (string, error) {
	name := b.volumeName()
	return name, b.fill(ctx, name, b.Size)
}

// readTag gives a tag of the volume that all read, made once.
func (b *bench) readTag(ctx context.Context) (string, error) {
	if b.tag != "" {
		return b.tag, nil
	}
	name, err := b.readVolume(ctx)
	if err != nil {
		return "", err
	}
	tag := fmt.Sprintf("%s@hotstart-%d", name, os.Getpid())
	if _, err := b.target.cell.CreateTags(ctx, tag); err != nil {
		return "", err
	}
	b.tag = tag
	return tag, nil
}

// fill creates a volume and writes its working set, unless that was done.
func (b *bench) fill(ctx context.Context, name string, size int64) error {
	if b.filled[name] {
		return nil
	}
	b.tell("write "+name, nil)
	if err := b.create(ctx, name, size); err != nil {
		return err
	}
	h, err := b.crew.hire()
	if err != nil {
		return err
	}
	defer h.dismiss()
	j := job{Cell: b.target.address, Volume: name, Size: size, Gen: readGen}
	if _, err := h.do(ctx, order{Do: orderFill, Job: &j}); err != nil {
		return errs.Wrap(err, "write volume %s", name)
	}
	b.filled[name] = true
	return nil
}

// create creates a volume. One that is there is taken only by consent, and is not
// removed at the end.
func (b *bench) create(ctx context.Context, name string, size int64) error {
	v, err := b.target.cell.CreateVolume(ctx, name, client.VolumeOptions{Size: size, K: b.K, M: b.M})
	switch {
	case err == nil:
		if b.target.own == nil {
			b.created = append(b.created, name)
		}
	case errs.KindOf(err) == errs.AlreadyExists && b.Overwrite:
		if v, err = b.target.cell.Volume(ctx, name); err == nil && v.Size < size {
			err = errs.New(errs.OutOfRange, "bench", "volume %s has %d bytes, the working set %d", name, v.Size, size).WithHint("--size")
		}
	case errs.KindOf(err) == errs.AlreadyExists:
		err = errs.New(errs.AlreadyExists, "bench", "volume %s is there; what it holds would be overwritten", name).
			WithHint("name one that is not there, or add --yes")
	}
	if err == nil && b.info.K == 0 {
		b.info = v
	}
	return err
}

// remove removes the volumes of jobs, to give their space back.
func (b *bench) remove(ctx context.Context, jobs []*job) error {
	for _, j := range jobs {
		if err := b.target.cell.RemoveVolume(ctx, j.Volume, true); err != nil {
			return err
		}
		for i, name := range b.created {
			if name == j.Volume {
				b.created = append(b.created[:i], b.created[i+1:]...)
				break
			}
		}
	}
	return nil
}
