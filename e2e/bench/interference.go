package bench

import (
	"context"
	"errors"
	"time"

	"strake/internal/errs"
)

const (
	// leadIn is how long an aggressor runs before its victim is looked at.
	leadIn = 500 * time.Millisecond
	// The geometry of the matrix: one server of six can be drained.
	matrixK, matrixM = 3, 2
)

// interference is one run of the matrix.
type interference struct {
	bench
	matrix  matrix
	control *hand            // near side of the echo
	far     *hand            // its far side
	echo    order            // what the near side is told
	victims map[string]*hand // by victim
	result  *Interference
	off     bool // the cell has no quality of service
	others  []float64
}

// Interfere measures every victim beside every aggressor, with quality of service
// and without, in two throwaway cells one after the other. pairs chooses, see
// newMatrix. Errors are Run's.
func Interfere(ctx context.Context, o Options, pairs string) (*Interference, error) {
	if o.K == 0 {
		o.K, o.M = matrixK, matrixM
	}
	m, err := newMatrix(pairs)
	if err == nil {
		err = o.check()
	}
	if err == nil && o.Cell != "" {
		err = errs.New(errs.InvalidArgument, "bench interference", "it drains servers: a cell that is in use can't be measured").WithHint("leave --cell out")
	}
	if err != nil {
		return nil, err
	}
	r := &Interference{}
	for _, off := range []bool{false, true} {
		i := &interference{bench: bench{Options: o, filled: map[string]bool{}, crew: newCrew(o.Binary)}, matrix: m, victims: map[string]*hand{}, result: r, off: off}
		i.FIFO = off
		err := i.inCell(ctx)
		i.crew.close()
		if err != nil {
			return nil, err
		}
	}
	r.finish()
	return r, nil
}

// inCell starts a cell, measures and ends it.
func (i *interference) inCell(ctx context.Context) (err error) {
	defer func() {
		for _, h := range i.victims {
			h.dismiss()
		}
		if i.control != nil {
			i.control.dismiss()
		}
		if i.far != nil {
			i.far.dismiss()
		}
		if endErr := i.end(); err == nil && ctx.Err() == nil {
			err = endErr
		}
	}()
	i.tell("start", nil)
	if i.target, err = newTarget(ctx, i.Options); err != nil {
		return err
	}
	volume, err := i.readVolume(ctx)
	if err != nil {
		return err
	}
	if err := i.hire(ctx, volume); err != nil {
		return err
	}
	i.describe()
	for run := range i.Repeat {
		for _, a := range i.matrix.aggressors {
			if err := i.beside(ctx, a, volume, run); err != nil {
				return errs.Wrap(err, "beside %s", a)
			}
		}
	}
	i.result.Machine.OtherCoresBusy = mean(i.others, i.result.Machine.OtherCoresBusy)
	return nil
}

// hire starts the victims' processes and opens their volume.
func (i *interference) hire(ctx context.Context, volume string) (err error) {
	for _, v := range victims() {
		h, err := i.crew.hire()
		if err != nil {
			return err
		}
		i.victims[v.Name] = h
		j := job{Cell: i.target.address, Volume: volume, Case: v, Size: i.Size, Seed: i.Seed, Clients: 1, Seconds: i.Seconds, Gen: readGen}
		for _, o := range []order{{Do: orderOpen, Job: &j}, {Do: orderWarm}} {
			if _, err := h.do(ctx, o); err != nil {
				return errs.Wrap(err, "victim %s", v.Name)
			}
		}
	}
	if i.off {
		return nil // the control is measured once
	}
	if i.far, err = i.crew.hire(); err != nil {
		return err
	}
	if i.control, err = i.crew.hire(); err != nil {
		return err
	}
	c := control()
	shape := ceiling{Message: int(c.Block), Windows: []int{1}}
	served, err := i.far.do(ctx, order{Do: orderServe, Ceiling: &shape})
	i.echo = order{Do: orderEcho, Ceiling: &shape, Address: served.Address, Rate: c.Rate, Seconds: i.Seconds}
	return err
}

// beside measures all victims of an aggressor, each in a window of its own.
func (i *interference) beside(ctx context.Context, name, volume string, run int) error {
	list := i.matrix.victims[name]
	if !i.off && name != sharing { // the echo's process has no cell to write to
		list = append(list[:len(list):len(list)], control())
	}
	for _, v := range list {
		a, err := i.newAggressor(name, volume, i.victims[v.Name])
		if err != nil {
			return err
		}
		i.tellRun(i.modeName()+v.Name+" beside "+name, run, nil)
		p, err := i.pair(ctx, v, a)
		if err != nil {
			return errs.Wrap(err, "victim %s", v.Name)
		}
		p.Victim, p.Aggressor = v.Name, name
		i.result.add(p, i.off, v.Name == control().Name, run)
		i.tellRun(i.modeName()+v.Name+" beside "+name, run, &Figures{IOPS: p.IOPS, P50: p.P50, P99: p.P99, MiBPerS: p.AggressorRate})
	}
	return nil
}

func (i *interference) modeName() string {
	if i.off {
		return "qos off: "
	}
	return "qos on: "
}

// pair measures one victim beside one aggressor.
func (i *interference) pair(ctx context.Context, v Case, a aggressor) (p *Pair, err error) {
	if err := a.begin(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	defer func() {
		if e := a.close(); err == nil {
			err = e
		}
	}()
	time.Sleep(leadIn)
	h, o := i.control, i.echo
	if v.Name != control().Name {
		h, o = i.victims[v.Name], order{Do: orderRun, Seconds: i.Seconds}
	}
	meter := i.target.with(append(a.pids(), h.pid()))
	before, err := meter.read()
	if err != nil {
		return nil, err
	}
	r, err := h.do(ctx, o)
	if err != nil {
		return nil, err
	}
	after, err := meter.read()
	if err != nil {
		return nil, err
	}
	i.others = append(i.others, after.othersBusy(before))
	s, err := newSample([]*tally{r.Tally})
	if err != nil {
		return nil, err
	}
	p = &Pair{Quantiles: s.quantiles}
	p.P50, p.P99, p.P999, p.IOPS, p.Unserved = s.P50, s.P99, s.P999, s.IOPS, float64(r.Tally.Unserved)
	for _, seconds := range after.used(before) {
		p.Cores += seconds
	}
	p.Cores /= max(after.at.Sub(before.at).Seconds(), 1e-3)
	p.AggressorRate, err = a.end(ctx, r.Tally.Bytes)
	return p, err
}

// describe fills in what was measured on what.
func (i *interference) describe() {
	r := i.result
	if r.Cell.K != 0 {
		return
	}
	r.Cell.K, r.Cell.M = i.geometry()
	r.Cell.Sync, r.Cell.PageCache, r.Cell.Emulated = "fdatasync on flush", "warm", i.Emulate
	r.Cell.ChunkServers, r.Cell.Counted = len(i.target.servers), i.target.counted
	r.Machine, r.Run = thisMachine(), i.runInfo()
}

// mean of a list, or what there was before when that is more.
func mean(list []float64, before float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return max(before, rounded(ratio(sum, float64(len(list)))))
}
