package simclient

import (
	"strake/client/internal/extent"
	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// followTries bounds the attempts to read the log of a volume that somebody
// writes meanwhile.
const followTries = 5

// Refresh brings a reader up to what is durable now.
func (v *Volume) Refresh(f *Fiber) error {
	if v.w != nil || v.snapshot != 0 {
		return nil
	}
	o, err := v.c.view(f, OpenVolume{Name: v.Name})
	if err != nil {
		return err
	}
	if o.Volume.ID != v.ID {
		return errs.New(errs.NotFound, "refresh", "volume %d was removed or rolled back; another has its name", v.ID)
	}
	return v.follow(f, o)
}

// follow builds the extent map of a volume that somebody may be writing.
func (v *Volume) follow(f *Fiber, o *Opened) error {
	var first layout.Seq // what the first look saw flushed
	for try := 1; ; try++ {
		tree, flushed, err := v.build(f, o)
		if try == 1 {
			first = flushed
		}
		if err == nil && tree.Applied() >= min(first, flushed) {
			v.tree = tree
			return nil
		}
		if err == nil {
			err = errs.New(errs.Corrupt, "replay the log", "seq %d is missing, and seq %d was flushed", tree.Applied()+1, flushed)
		}
		if try == followTries || f.dead {
			return err
		}
		if o, err = v.c.view(f, OpenVolume{Name: v.Name}); err != nil {
			return err
		}
		if o.Volume.ID != v.ID {
			return errs.New(errs.NotFound, "open", "volume %d was removed or rolled back; another has its name", v.ID)
		}
	}
}

// loadAll builds the extent map for a writer, or of a snapshot, whose log ends at last.
func (v *Volume) loadAll(f *Fiber, o *Opened, last layout.Seq) error {
	tree, _, err := v.build(f, o)
	if err != nil {
		return err
	}
	if tree.Applied() != last {
		return errs.New(errs.Corrupt, "replay the log", "seq %d is missing, the log ends at %d", tree.Applied()+1, last)
	}
	v.tree = tree
	return nil
}

// build makes an extent map of the newest root and the stripes after it, up to
// the first that is missing. flushed is the last seq that is known to be durable.
func (v *Volume) build(f *Fiber, o *Opened) (tree *extent.Map, flushed layout.Seq, err error) {
	tree = extent.New()
	if o.Root.Number > 0 {
		if tree, err = extent.Open(extent.Root(o.Root.Page)); err != nil {
			return nil, 0, errs.Wrap(err, "read map root %d", o.Root.Number)
		}
	}
	headers, flushed, err := v.c.replayHeaders(f, tree.Covers(), o.Segments)
	for i := range o.Ancestors {
		if err != nil {
			break
		}
		a := &o.Ancestors[i]
		var more []*stripe.Header
		if more, err = v.c.ancestorHeaders(f, tree.Covers(), a); err == nil {
			headers, flushed = append(headers, more...), max(flushed, a.Limit)
		}
	}
	if err != nil {
		return nil, 0, errs.Wrap(err, "replay the log after seq %d", tree.Covers())
	}
	return tree, flushed, apply(tree, recovery.Replay(headers, o.Cuts))
}

// apply maps headers up to the first that is missing.
func apply(tree *extent.Map, headers []*stripe.Header) error {
	for _, h := range headers {
		if h.Seq > tree.Applied()+1 {
			return nil
		}
		if err := tree.Apply(h); err != nil {
			return err
		}
	}
	return nil
}
