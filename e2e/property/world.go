package property

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"strake/client"
)

const (
	block      = 4096
	leastSize  = 256 * block
	mostSize   = 1024 * block
	mostFrozen = 6
)

// Cell is where a history happens.
type Cell interface {
	// Dial connects anew.
	Dial(ctx context.Context) (*client.Cell, error)
	// Harm kills a server that pick chooses. heal has it back, and waits until the cell
	// lacks nothing.
	Harm(ctx context.Context, pick uint64) (heal func() error, err error)
}

// world is a volume that is open for writing, and what was made of it.
type world struct {
	cell   Cell
	c      *client.Cell
	v      *client.Volume
	prefix string // of names
	name   string // of the volume
	made   int    // names given
	// model is what the volume holds; base is what it held when it was flushed last,
	// and since are the blocks that were changed after, in their order.
	model, base []byte
	since       []change
	frozen      map[string][]byte // by volume@snapshot
}

// change is one block's new content; nil: zeros.
type change struct {
	at   int
	data []byte
}

// Run carries operations out on volumes of its own, whose names begin with prefix,
// and removes them. An error says which operation found what.
func Run(ctx context.Context, cell Cell, prefix string, ops []Op) error {
	w := &world{cell: cell, prefix: prefix, frozen: map[string][]byte{}, model: make([]byte, mostSize/2)}
	w.name, w.base = prefix+"-v", slices.Clone(w.model)
	if err := w.begin(ctx); err != nil {
		return err
	}
	defer func() { w.c.Close() }()
	for i, o := range ops {
		if err := w.do(ctx, o); err != nil {
			return fmt.Errorf("operation %d, %v: %w", i, o, err)
		}
	}
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return w.clear(ctx)
}

func (w *world) begin(ctx context.Context) (err error) {
	if w.c, err = w.cell.Dial(ctx); err != nil {
		return err
	}
	if _, err = w.c.CreateVolume(ctx, w.name, client.VolumeOptions{Size: int64(len(w.model)), K: 2, M: 1}); err != nil {
		return err
	}
	return w.open(ctx)
}

func (w *world) open(ctx context.Context) (err error) {
	w.v, err = w.c.Open(ctx, w.name, client.OpenOptions{Write: true, Force: true})
	return err
}

// clear removes all volumes, with their snapshots.
func (w *world) clear(ctx context.Context) error {
	if err := w.v.CloseContext(ctx); err != nil {
		return err
	}
	names := map[string]bool{w.name: true}
	for name := range w.frozen {
		names[volumeOf(name)] = true
	}
	for name := range names {
		if err := w.c.RemoveVolume(ctx, name, true); err != nil {
			return err
		}
	}
	return nil
}

func volumeOf(snapshot string) string {
	volume, _, _ := strings.Cut(snapshot, "@")
	return volume
}

func (w *world) do(ctx context.Context, o Op) error {
	switch o.Kind {
	case Write, Discard, WriteZeroes:
		return w.change(ctx, o)
	case Flush:
		return w.flushed(w.v.Flush(ctx))
	case Snapshot:
		return w.snapshot(ctx)
	case Clone, Rollback, Remove:
		return w.withSnapshot(ctx, o)
	case Resize:
		return w.resize(ctx, o)
	case Reopen:
		return w.reopen(ctx, func() error { return nil })
	case Crash:
		return w.crash(ctx, o.Pick)
	case Clean:
		if _, err := w.v.Clean(ctx); err != nil {
			return err
		}
		return w.check(ctx)
	case Flatten:
		_, err := w.c.FlattenVolume(ctx, w.name, false)
		return err
	}
	return fmt.Errorf("kind %d is not known", o.Kind)
}

// change writes, or clears, some blocks.
func (w *world) change(ctx context.Context, o Op) error {
	size := len(w.model) / block
	at := o.At * size / 1000
	n := min(o.N, size-at)
	part := w.model[at*block : (at+n)*block]
	switch o.Kind {
	case Write:
		content(part, o.Pick)
		for i := range n {
			w.since = append(w.since, change{at + i, slices.Clone(part[i*block : (i+1)*block])})
		}
		_, err := w.v.WriteAtContext(ctx, part, int64(at*block))
		return err
	case Discard, WriteZeroes:
		clear(part)
		for i := range n {
			w.since = append(w.since, change{at: at + i})
		}
	}
	if o.Kind == Discard {
		return w.v.Discard(ctx, int64(at*block), int64(n*block))
	}
	return w.v.WriteZeroes(ctx, int64(at*block), int64(n*block))
}

func content(p []byte, seed uint64) {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	r := rand.NewChaCha8(key)
	r.Read(p)
}

// flushed notes that all is durable.
func (w *world) flushed(err error) error {
	if err == nil {
		w.base, w.since = slices.Clone(w.model), nil
	}
	return err
}

func (w *world) next() string {
	w.made++
	return fmt.Sprint(w.made)
}

func (w *world) snapshot(ctx context.Context) error {
	if len(w.frozen) >= mostFrozen {
		return nil
	}
	name := w.name + "@s" + w.next()
	if _, err := w.c.CreateSnapshots(ctx, name); err != nil {
		return err
	}
	w.frozen[name] = slices.Clone(w.model)
	return w.flushed(nil)
}

// withSnapshot does something with one of the snapshots.
func (w *world) withSnapshot(ctx context.Context, o Op) error {
	names := slices.Sorted(maps.Keys(w.frozen))
	if o.Kind == Rollback {
		names = slices.DeleteFunc(names, func(s string) bool { return volumeOf(s) != w.name })
	}
	if len(names) == 0 {
		return nil
	}
	name := names[int(o.Pick%uint64(len(names)))]
	switch o.Kind {
	case Clone:
		return w.clone(ctx, name)
	case Rollback:
		return w.rollback(ctx, name)
	}
	if err := w.c.RemoveSnapshot(ctx, name); err != nil {
		return err
	}
	delete(w.frozen, name)
	return nil
}

// clone goes on with a clone. What was written before stays as a snapshot.
func (w *world) clone(ctx context.Context, of string) error {
	last := w.name + "@s" + w.next()
	if _, err := w.c.CreateSnapshots(ctx, last); err != nil {
		return err
	}
	w.frozen[last] = slices.Clone(w.model)
	to := w.prefix + "-c" + w.next()
	return w.reopen(ctx, func() error {
		_, err := w.c.CloneVolume(ctx, of, to)
		w.name, w.model = to, slices.Clone(w.frozen[of])
		return err
	})
}

func (w *world) rollback(ctx context.Context, to string) error {
	return w.reopen(ctx, func() error {
		_, kept, err := w.c.RollbackVolume(ctx, to, false)
		if err == nil {
			w.frozen[w.name+"@"+kept.Name[strings.IndexByte(kept.Name, '@')+1:]] = w.model
			w.model = slices.Clone(w.frozen[to])
		}
		return err
	})
}

func (w *world) resize(ctx context.Context, o Op) error {
	size := leastSize + int(o.Pick)%((mostSize-leastSize)/block+1)*block
	return w.reopen(ctx, func() error {
		_, err := w.c.ResizeVolume(ctx, w.name, int64(size), true)
		w.model = append(w.model[:min(size, len(w.model))], make([]byte, max(0, size-len(w.model)))...)
		return err
	})
}

// reopen closes the volume, does something, and opens it again.
func (w *world) reopen(ctx context.Context, between func() error) error {
	if err := w.v.CloseContext(ctx); err != nil {
		return err
	}
	if err := between(); err != nil {
		return err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	return w.flushed(w.holds(ctx, w.v, w.model))
}

// crash lets the writer and a server die; the server is back before the volume is opened,
// or after. Often the writer's last deed is a snapshot. What is found then is a prefix of what was
// written, with all that was flushed.
func (w *world) crash(ctx context.Context, pick uint64) (err error) {
	if pick%4 == 0 { // no header tells that what it holds is flushed
		if err := w.snapshot(ctx); err != nil {
			return err
		}
	}
	w.c.Abandon()
	heal, err := w.cell.Harm(ctx, pick)
	if err != nil {
		return err
	}
	heal = sync.OnceValue(heal)
	defer func() { err = errors.Join(err, heal()) }()
	if pick%3 == 0 {
		if err := heal(); err != nil {
			return err
		}
	}
	if w.c, err = w.cell.Dial(ctx); err != nil {
		return err
	}
	if err = w.open(ctx); err != nil {
		return err
	}
	got := make([]byte, len(w.model))
	if _, err := w.v.ReadAtContext(ctx, got, 0); err != nil {
		return err
	}
	if !isPrefix(got, w.base, w.since) {
		return fmt.Errorf("what is found after the crash is no prefix of what was written: %w", differs(got, w.model))
	}
	w.model = got
	return errors.Join(w.flushed(nil), w.check(ctx))
}

// isPrefix tells whether content is a base with the first so many of some changes.
func isPrefix(got, base []byte, since []change) bool {
	now, off := slices.Clone(base), 0
	at := func(b []byte, i int) []byte { return b[i*block : (i+1)*block] }
	for i := range len(now) / block {
		if !bytes.Equal(at(now, i), at(got, i)) {
			off++
		}
	}
	for _, c := range since {
		if off == 0 {
			return true
		}
		was := bytes.Equal(at(now, c.at), at(got, c.at))
		clear(at(now, c.at))
		copy(at(now, c.at), c.data)
		switch is := bytes.Equal(at(now, c.at), at(got, c.at)); {
		case is && !was:
			off--
		case was && !is:
			off++
		}
	}
	return off == 0
}

// check compares the volume and all snapshots with what they must hold.
func (w *world) check(ctx context.Context) error {
	if err := w.holds(ctx, w.v, w.model); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.frozen)) {
		v, err := w.c.OpenSnapshot(ctx, name)
		if err != nil {
			return err
		}
		if err := w.holds(ctx, v, w.frozen[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := v.CloseContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) holds(ctx context.Context, v *client.Volume, want []byte) error {
	if v.Size() != int64(len(want)) {
		return fmt.Errorf("it has %d bytes, not %d", v.Size(), len(want))
	}
	got := make([]byte, len(want))
	if _, err := v.ReadAtContext(ctx, got, 0); err != nil {
		return err
	}
	return differs(got, want)
}

func differs(got, want []byte) error {
	for i := range len(got) / block {
		if g, w := got[i*block:][:block], want[i*block:][:block]; !bytes.Equal(g, w) {
			return fmt.Errorf("block %d begins with %x, not with %x", i, g[:8], w[:8])
		}
	}
	return nil
}
