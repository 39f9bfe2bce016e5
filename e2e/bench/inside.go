package bench

import (
	"context"
	"errors"
)

// inside is a writer in the victim's process, on its connections. Its volume goes with
// it.
type inside struct {
	i      *interference
	hand   *hand // the victim's
	volume string
	begun  bool
}

func (a *inside) begin(ctx context.Context) error {
	i, load := a.i, aggressorLoads()[1]
	i.gen++
	j := job{Cell: i.target.address, Volume: "aggressor", Case: load, Size: i.Size, Seed: i.Seed + 1, Clients: 1, Gen: i.gen + readGen}
	if err := i.create(ctx, j.Volume, i.Size); err != nil {
		return err
	}
	a.volume = j.Volume
	if _, err := a.hand.do(ctx, order{Do: orderBeside, Job: &j}); err != nil {
		return err
	}
	_, err := a.hand.do(ctx, order{Do: orderBegin, Seconds: i.Seconds + leadIn.Seconds()})
	a.begun = err == nil
	return err
}

func (a *inside) end(ctx context.Context, _ int64) (float64, error) {
	a.begun = false
	r, err := a.hand.do(ctx, order{Do: orderEnd})
	if err != nil {
		return 0, err
	}
	return ratio(float64(r.Tally.Bytes)/mib, r.Tally.Seconds), nil
}

func (a *inside) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), upkeepTimeout)
	defer cancel()
	var err error
	if a.begun {
		_, err = a.hand.do(ctx, order{Do: orderEnd})
	}
	if a.volume == "" {
		return err
	}
	return errors.Join(err, a.i.target.cell.RemoveVolume(ctx, a.volume, true))
}

func (a *inside) pids() []int { return nil } // the victim's counts already
