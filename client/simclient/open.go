package simclient

import (
	"strake/client/internal/extent"
	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
)

// OpenReader opens a volume for reading what is durable now.
func (c *Client) OpenReader(f *Fiber, id layout.VolumeID) (*Volume, error) {
	o, err := c.view(f, id)
	if err != nil {
		return nil, err
	}
	if o.Volume.Holder == 0 && hasUnsealed(o) {
		if _, err := c.Recover(f, id); err != nil && errs.KindOf(err) != errs.LeaseHeld {
			return nil, err
		}
		if o, err = c.view(f, id); err != nil {
			return nil, err
		}
	}
	v := c.newVolume(&o.Volume)
	return v, v.load(f, o)
}

// OpenWriter takes a volume's lease, recovers what older writers left, and opens it.
func (c *Client) OpenWriter(f *Fiber, id layout.VolumeID, force bool) (*Volume, error) {
	g, last, err := c.takeOver(f, &AcquireLease{Volume: id, Force: force})
	if err != nil {
		return nil, err
	}
	v := c.newVolume(&g.Open.Volume)
	if err := v.load(f, g.Open); err != nil {
		return nil, err
	}
	if c.dead || f.dead {
		return nil, errKilled
	}
	v.Epoch = g.Epoch
	v.w = newWriter(v, g.Epoch, last, g.Open.Root.Number)
	c.writers = append(c.writers, v)
	return v, nil
}

// takeOver acquires a volume's lease and recovers. It gives the lease with the
// view after recovery, and the log's last seq.
func (c *Client) takeOver(f *Fiber, request *AcquireLease) (*Granted, layout.Seq, error) {
	request.Command, request.Session = c.command(), c.session.ID
	g, err := metaCall[*Granted](c, f, 10*attemptTimeout, attemptTimeout, request)
	if err != nil {
		return nil, 0, errs.Wrap(err, "acquire lease")
	}
	c.learn(g.Open.Segments)
	if g.Clean {
		return g, g.LastSeq, nil
	}
	l := lease{c, g.Open.Volume.ID, g.Epoch}
	last, err := l.recover(f, g)
	if err != nil {
		return nil, 0, errs.Wrap(err, "recover")
	}
	after := *g
	after.Open, err = c.view(f, l.volume)
	if err == nil && after.Open.Volume.Epoch != g.Epoch { // its map would show a later writer's stripes
		err = errs.New(errs.StaleEpoch, "", "epoch %d took the volume over while it was being recovered", after.Open.Volume.Epoch)
	}
	return &after, last, err
}

// Recover recovers a volume, as a janitor does, and gives the lease back.
func (c *Client) Recover(f *Fiber, id layout.VolumeID) (layout.Seq, error) {
	g, last, err := c.takeOver(f, &AcquireLease{Volume: id})
	if err != nil {
		return 0, err
	}
	_, err = metaCall[*Kept](c, f, forever, attemptTimeout, &ReleaseLease{Command: c.command(), Session: c.session.ID, Volume: id, Epoch: g.Epoch, LastSeq: last})
	return last, errs.Wrap(err, "give the lease back")
}

func (c *Client) view(f *Fiber, id layout.VolumeID) (*Opened, error) {
	o, err := metaCall[*Opened](c, f, 10*attemptTimeout, attemptTimeout, &OpenVolume{Volume: id})
	if err != nil {
		return nil, errs.Wrap(err, "open volume")
	}
	c.learn(o.Segments)
	return o, nil
}

func hasUnsealed(o *Opened) bool {
	for _, s := range o.Segments {
		if s.Seal == nil && !s.Map {
			return true
		}
	}
	return false
}

func (c *Client) newVolume(i *VolumeInfo) *Volume {
	return &Volume{c: c, ID: i.ID, Blocks: i.Blocks, geometry: i.Geometry}
}

// load builds the extent map: the newest root, and the stripes after it.
func (v *Volume) load(f *Fiber, o *Opened) error {
	tree := extent.New()
	if o.Root.Number > 0 {
		var err error
		if tree, err = extent.Open(extent.Root(o.Root.Page)); err != nil {
			return errs.Wrap(err, "read map root %d", o.Root.Number)
		}
	}
	headers, err := v.c.replayHeaders(f, tree.Covers(), o.Segments)
	if err != nil {
		return errs.Wrap(err, "replay the log after seq %d", tree.Covers())
	}
	for _, h := range recovery.Replay(headers, o.Cuts) {
		if h.Seq > tree.Applied()+1 {
			return errs.New(errs.Corrupt, "replay the log", "seq %d is missing, the next is %d", tree.Applied()+1, h.Seq)
		}
		if err := tree.Apply(h); err != nil {
			return err
		}
	}
	v.tree = tree
	return nil
}

// Refresh brings a reader up to what is durable now.
func (v *Volume) Refresh(f *Fiber) error {
	if v.w != nil {
		return nil
	}
	o, err := v.c.view(f, v.ID)
	if err != nil {
		return err
	}
	return v.load(f, o)
}
