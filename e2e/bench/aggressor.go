package bench

import (
	"context"
	"sync"
	"time"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

// aggressor makes load beside a victim. begin, end and close are called once
// each, close also after an error.
type aggressor interface {
	begin(ctx context.Context) error
	// end tells the MiB/s since begin, or since shortly before; victim is how many
	// bytes the victim read meanwhile.
	end(ctx context.Context, victim int64) (float64, error)
	close() error
	pids() []int
}

// newAggressor makes an aggressor by its name, beside a victim's process.
func (i *interference) newAggressor(name, volume string, victim *hand) (aggressor, error) {
	switch name {
	case alone:
		return idle{}, nil
	case sharing:
		return &inside{i: i, hand: victim}, nil
	case rebuilding, scrubbing:
		return i.newUpkeep(name)
	}
	for _, c := range aggressorLoads() {
		if c.Name == name {
			return &loader{i: i, load: c, volume: volume}, nil
		}
	}
	return nil, errs.New(errs.InvalidArgument, "choose an aggressor", "%q is not known", name)
}

// idle does nothing.
type idle struct{}

func (idle) begin(context.Context) error                 { return nil }
func (idle) end(context.Context, int64) (float64, error) { return 0, nil }
func (idle) close() error                                { return nil }
func (idle) pids() []int                                 { return nil }

// loader is a client process that loads the cell for a window and its lead-in. A
// writer has a volume of its own, which goes with it.
type loader struct {
	i      *interference
	load   Case
	volume string
	hand   *hand
	own    string // volume to remove
	done   chan struct{}
	report report // set before done is closed
	err    error  // the same
}

func (a *loader) begin(ctx context.Context) (err error) {
	i := a.i
	i.gen++
	j := job{Cell: i.target.address, Volume: a.volume, Case: a.load, Size: i.Size, Seed: i.Seed + 1, Clients: 1, Seconds: i.Seconds, Gen: readGen}
	if a.load.Write {
		j.Volume, j.Gen = "aggressor", i.gen+readGen
		if err := i.create(ctx, j.Volume, i.Size); err != nil {
			return err
		}
		a.own = j.Volume
	}
	if a.hand, err = i.crew.hire(); err != nil {
		return err
	}
	orders := []order{{Do: orderOpen, Job: &j}}
	if a.load.Clean {
		orders = []order{{Do: orderFill, Job: &j}, {Do: orderOpen, Job: &j}}
	}
	for _, o := range orders {
		if _, err := a.hand.do(ctx, o); err != nil {
			return err
		}
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		a.report, a.err = a.hand.do(ctx, order{Do: orderRun, Seconds: i.Seconds + leadIn.Seconds()})
	}()
	return nil
}

func (a *loader) end(context.Context, int64) (float64, error) {
	<-a.done
	if a.err != nil {
		return 0, a.err
	}
	return ratio(float64(a.report.Tally.Bytes)/mib, a.report.Tally.Seconds), nil
}

func (a *loader) close() error {
	if a.done != nil {
		<-a.done
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_, _ = a.hand.do(ctx, order{Do: orderClose}) // what was written is thrown away
	}
	if a.hand != nil {
		a.hand.dismiss()
	}
	if a.own == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return a.i.target.cell.RemoveVolume(ctx, a.own, true)
}

func (a *loader) pids() []int { return []int{a.hand.pid()} }

// upkeep is work of the cell itself that is kept going. Its rate is what the
// devices did beyond the victim's reads: bytes written by a rebuild, bytes read by
// a scrub.
type upkeep struct {
	i     *interference
	name  string
	meta  *dial.Meta
	stop  context.CancelFunc
	ended sync.WaitGroup

	began         time.Time
	written, read uint64
	errMu         sync.Mutex
	err           error // guarded by errMu: the first of the work
}

const (
	upkeepPoll    = 200 * time.Millisecond
	upkeepTimeout = 30 * time.Second
)

func (i *interference) newUpkeep(name string) (*upkeep, error) {
	m, err := dial.NewMeta(i.target.address, tls.Policy{})
	return &upkeep{i: i, name: name, meta: m}, err
}

func (a *upkeep) begin(ctx context.Context) error {
	work, err := a.scrub, error(nil)
	if a.name == rebuilding {
		work, err = a.drain, a.settled(ctx)
	}
	if err != nil {
		return err
	}
	ctx, a.stop = context.WithCancel(ctx)
	a.ended.Go(func() {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			a.errMu.Lock()
			a.err = err
			a.errMu.Unlock()
		}
	})
	a.began = time.Now()
	a.written, a.read = a.i.target.devices(ctx)
	return nil
}

func (a *upkeep) end(ctx context.Context, victim int64) (float64, error) {
	written, read := a.i.target.devices(ctx)
	seconds := time.Since(a.began).Seconds()
	a.errMu.Lock()
	defer a.errMu.Unlock()
	if a.name == rebuilding {
		return ratio(float64(written-a.written)/mib, seconds), a.err
	}
	return ratio(max(0, float64(read-a.read)-float64(victim))/mib, seconds), a.err
}

func (a *upkeep) close() error {
	if a.stop != nil {
		a.stop()
		a.ended.Wait()
	}
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), upkeepTimeout)
	defer cancel()
	if a.name == rebuilding && a.stop != nil {
		for _, s := range a.i.target.servers {
			if e := a.change(ctx, s.ID, pb.ChangeDevicesRequest_UNDRAIN); err == nil {
				err = e
			}
		}
		if err == nil {
			err = a.settled(ctx)
		}
	}
	a.meta.Close()
	return err
}

func (*upkeep) pids() []int { return nil }

// drain empties one server after the other, as long as ctx lasts.
func (a *upkeep) drain(ctx context.Context) error {
	servers := a.i.target.servers
	for n := 0; ; n++ {
		id := servers[n%len(servers)].ID
		if err := a.change(ctx, id, pb.ChangeDevicesRequest_DRAIN); err != nil {
			return err
		}
		if err := a.settled(ctx); err != nil {
			return err
		}
		if err := a.change(ctx, id, pb.ChangeDevicesRequest_UNDRAIN); err != nil {
			return err
		}
	}
}

func (a *upkeep) change(ctx context.Context, server uint64, change pb.ChangeDevicesRequest_Change) error {
	return a.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ChangeDevices(ctx, &pb.ChangeDevicesRequest{Server: server, Change: change})
		return err
	})
}

// settled waits until nothing moves and nothing is lost.
func (a *upkeep) settled(ctx context.Context) error {
	for calm := 0; calm < 2; {
		var s *pb.RebuildStatusReply
		err := a.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
			s, err = m.RebuildStatus(ctx, &pb.RebuildStatusRequest{})
			return err
		})
		if err != nil {
			return err
		}
		if calm++; s.MovingShards+s.LostShards+s.Running > 0 {
			calm = 0
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// scrub has all servers scrub as fast as they may, as long as ctx lasts. A cycle of
// their own that is under way would go on at its leisure if it were not told.
func (a *upkeep) scrub(ctx context.Context) error {
	for {
		for _, s := range a.i.target.servers {
			conn, err := a.i.target.control.Get(s.Control)
			if err != nil {
				return err
			}
			if _, err := pb.NewChunkClient(conn).Scrub(ctx, &pb.ScrubRequest{Start: true}); err != nil {
				return pb.FromStatus(err)
			}
		}
		if err := pause(ctx); err != nil {
			return nil
		}
	}
}

// pause waits a moment, or until ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for the cell's work")
	case <-time.After(upkeepPoll):
		return nil
	}
}
