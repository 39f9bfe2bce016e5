package simclient

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// OpenReader opens a volume for reading what is durable now.
func (c *Client) OpenReader(f *Fiber, name string) (*Volume, error) {
	o, err := c.view(f, OpenVolume{Name: name})
	if err != nil {
		return nil, err
	}
	if o.Volume.Holder == 0 && hasUnsealed(o) {
		if _, err := c.Recover(f, o.Volume.ID); err != nil && errs.KindOf(err) != errs.LeaseHeld {
			return nil, err
		}
		if o, err = c.view(f, OpenVolume{Name: name}); err != nil {
			return nil, err
		}
	}
	v := c.newVolume(&o.Volume)
	return v, v.follow(f, o)
}

// OpenWriter takes a volume's lease, recovers what older writers left, and opens it.
func (c *Client) OpenWriter(f *Fiber, name string, force bool) (*Volume, error) {
	return c.openLeased(f, &AcquireLease{Name: name, Force: force})
}

func (c *Client) openLeased(f *Fiber, request *AcquireLease) (*Volume, error) {
	g, last, err := c.takeOver(f, request)
	if err != nil {
		return nil, err
	}
	v := c.newVolume(&g.Open.Volume)
	if err := v.loadAll(f, g.Open, last); err != nil {
		return nil, err
	}
	if c.dead || f.dead {
		return nil, errKilled
	}
	v.Epoch = g.Epoch
	v.w = newWriter(v, g, last)
	c.writers = append(c.writers, v)
	if !c.opts.Janitor && c.opts.Clean.Every > 0 {
		c.Go(v.w.clean.run)
	}
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
	c.learnOpened(g.Open)
	if g.Clean {
		return g, g.LastSeq, nil
	}
	l := lease{c, g.Open.Volume.ID, g.Epoch}
	last, err := l.recover(f, g)
	if err != nil {
		return nil, 0, errs.Wrap(err, "recover")
	}
	after := *g
	after.Open, err = c.view(f, OpenVolume{Name: g.Open.Volume.Name})
	if err == nil && after.Open.Volume.Epoch != g.Epoch { // its map would show a later writer's stripes
		err = errs.New(errs.StaleEpoch, "", "epoch %d took the volume over while it was being recovered", after.Open.Volume.Epoch)
	}
	return &after, last, err
}

// Recover recovers a volume, as a janitor does, and gives the lease back.
func (c *Client) Recover(f *Fiber, id layout.VolumeID) (layout.Seq, error) {
	return c.recoverWith(f, &AcquireLease{Volume: id})
}

func (c *Client) recoverWith(f *Fiber, request *AcquireLease) (layout.Seq, error) {
	g, last, err := c.takeOver(f, request)
	if err != nil {
		return 0, err
	}
	_, err = metaCall[*Kept](c, f, forever, attemptTimeout, &ReleaseLease{Command: c.command(), Session: c.session.ID, Volume: g.Open.Volume.ID, Epoch: g.Epoch, LastSeq: last})
	return last, errs.Wrap(err, "give the lease back")
}

func (c *Client) view(f *Fiber, request OpenVolume) (*Opened, error) {
	o, err := metaCall[*Opened](c, f, 10*attemptTimeout, attemptTimeout, &request)
	if err != nil {
		return nil, errs.Wrap(err, "open volume")
	}
	c.learnOpened(o)
	return o, nil
}

func (c *Client) learnOpened(o *Opened) {
	c.learn(o.Segments)
	for _, a := range o.Ancestors {
		c.learn(a.Segments)
	}
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
	return &Volume{c: c, ID: i.ID, Name: i.Name, Blocks: i.Blocks, geometry: i.Geometry}
}
