package bench

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/e2e/cluster"
	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/pb"
)

const (
	// stopLasts is how much longer than --seconds a stopped server is looked at: the
	// longest that a writer waits for it.
	stopLasts = 3.0
	// gapPoll is how often something is asked for again after a fault.
	gapPoll = 20 * time.Millisecond
	// gapSegments bounds a look at a volume's segments.
	gapSegments = 1000
)

// gapTeam is a writer and a reader that faults are made under.
type gapTeam struct {
	*bench
	team   team   // the writer, then the reader
	volume string // the writer's
}

// gapTeam has them open their volumes. Dismiss the team.
func (b *bench) gapTeam(ctx context.Context) (*gapTeam, error) {
	var jobs []*job
	for _, c := range gapLoads() {
		one, _, err := b.jobs(ctx, c)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, one[0])
	}
	t, err := b.crew.hireTeam(len(jobs))
	if err != nil {
		return nil, err
	}
	if _, err = t.all(ctx, func(i int) order { return order{Do: orderOpen, Job: jobs[i]} }); err != nil {
		t.dismiss()
	}
	return &gapTeam{bench: b, team: t, volume: jobs[0].Volume}, err
}

// once runs both loads, takes a server away in the middle, and brings it back.
// What was written is compared afterwards.
func (t *gapTeam) once(ctx context.Context, g *Gap, i int) error {
	if _, err := t.team.all(ctx, same(order{Do: orderWarm})); err != nil {
		return err
	}
	server, err := t.victim(ctx, g.Name, i)
	if err != nil {
		return err
	}
	lives := t.lives(ctx, server)
	reports, back, err := t.through(ctx, g.Name, server)
	if err != nil {
		return err
	}
	hist, err := reports[1].Tally.histogram()
	if err != nil {
		return err
	}
	g.Writes = append(g.Writes, rounded(1000*reports[0].Tally.Gap))
	g.Reads = append(g.Reads, rounded(float64(hist.Max())/float64(time.Millisecond)))
	if g.Name == gapLeader {
		g.Backs = append(g.Backs, rounded(1000*back.Seconds()))
	}
	if err := t.bringBack(ctx, g.Name, server, lives); err != nil {
		return err
	}
	_, err = t.team.all(ctx, same(order{Do: orderCheck}))
	return err
}

// through runs the loads and makes the fault after a third of the time. It gives
// how long it took from there until a volume could be opened anew, where a leader
// was killed.
func (t *gapTeam) through(ctx context.Context, name string, server *cluster.Process) (reports []report, back time.Duration, err error) {
	fault, seconds := server.Kill, t.Seconds
	if name == gapStop {
		fault, seconds = server.Pause, t.Seconds+stopLasts
	}
	var group errgroup.Group
	timer := time.NewTimer(time.Duration(t.Seconds / 3 * float64(time.Second)))
	defer timer.Stop()
	group.Go(func() error {
		<-timer.C
		begun := time.Now()
		if err := fault(); err != nil {
			return errs.As(err, errs.Unavailable, "make the fault")
		}
		if name != gapLeader {
			return nil
		}
		err := t.openAnew(ctx)
		back = time.Since(begun)
		return err
	})
	reports, err = t.team.all(ctx, same(order{Do: orderRun, Seconds: seconds}))
	if faultErr := group.Wait(); err == nil {
		err = faultErr
	}
	return reports, back, err
}

// openAnew opens a volume for writing from a client that knows nothing yet.
func (b *bench) openAnew(ctx context.Context) error {
	cell, err := client.Dial(ctx, client.Config{Addresses: b.target.address})
	if err != nil {
		return err
	}
	defer cell.Close()
	v, err := cell.Open(ctx, b.volumeName(), client.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	return v.CloseContext(ctx)
}

// victim chooses the server that a fault takes: the metadata leader, or in turn one
// of the chunk servers that hold a shard of a segment that the volume's writer has open.
func (t *gapTeam) victim(ctx context.Context, name string, i int) (*cluster.Process, error) {
	own := t.target.own
	if name == gapLeader {
		p, err := own.Leader(ctx)
		return p, errs.As(err, errs.Unavailable, "find the leader")
	}
	holders, err := t.holders(ctx, t.volume)
	if err != nil {
		return nil, err
	}
	for n := range own.Chunkds {
		if p := own.Chunkds[(i+n)%len(own.Chunkds)]; holders[p.Addr] {
			return p, nil
		}
	}
	return nil, errs.New(errs.NotFound, "choose a server", "none holds a shard of volume %s", t.volume)
}

// holders gives the addresses of the servers that hold a shard of the oldest
// segment of a volume that is not sealed: its writer appends there.
func (b *bench) holders(ctx context.Context, volume string) (map[string]bool, error) {
	v, err := b.target.cell.Volume(ctx, volume)
	if err != nil {
		return nil, err
	}
	meta, err := dial.NewMeta(b.target.address, tls.Policy{})
	if err != nil {
		return nil, err
	}
	defer meta.Close()
	holders := map[string]bool{}
	return holders, meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		r, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: v.ID, Most: gapSegments})
		if err != nil {
			return err
		}
		clear(holders)
		for _, s := range r.Segments {
			if s.Seal == nil && !s.Map {
				hold(holders, s, r.Servers)
				return nil
			}
		}
		return nil
	})
}

func hold(holders map[string]bool, s *pb.Segment, servers []*pb.ServerAddress) {
	for _, p := range s.Placements {
		for _, a := range servers {
			if a.Server == p.Server {
				holders[a.DataAddress] = true
			}
		}
	}
}

// lives is which life of its devices' a chunk server is in.
func (b *bench) lives(ctx context.Context, p *cluster.Process) (sum layout.Incarnation) {
	servers, err := b.target.cell.Servers(ctx)
	for _, s := range servers {
		if err != nil || s.Address != p.Addr || s.State != "up" {
			continue
		}
		for _, d := range s.Devices {
			sum += layout.Incarnation(d.Incarnation)
		}
	}
	return sum
}

// bringBack undoes the fault and waits until the server takes part again.
func (b *bench) bringBack(ctx context.Context, name string, p *cluster.Process, before layout.Incarnation) error {
	again := func() error { return p.Restart() }
	if name == gapStop {
		again = p.Resume
	}
	if err := again(); err != nil {
		return errs.As(err, errs.Unavailable, "let the server go on")
	}
	for name == gapKill && b.lives(ctx, p) <= before {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(gapPoll):
		}
	}
	if err := b.target.own.WaitHealthy(ctx); err != nil {
		return errs.As(err, errs.Unavailable, "wait for the server")
	}
	return b.target.look(ctx)
}
