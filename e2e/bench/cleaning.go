package bench

import (
	"context"
	"time"

	"strake/client"
)

// dirtied is which part of a working set is overwritten before it is cleaned, one block
// of so many. Garbage is spread thinly over everything, so that cleaning moves several
// times what was overwritten.
const dirtied = 5

// clean is a cleaner's load: it overwrites a part of the working set in places drawn
// at random, cleans the volume as long as anything is worth it, and begins again. What
// counts is the live data that was moved.
func (l *load) clean(ctx context.Context, r *recorder, seconds float64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	s := l.slot(r, 0)
	for ctx.Err() == nil {
		if err := s.dirty(ctx); err != nil {
			return unlessOver(ctx, err)
		}
		began := time.Now()
		moved, err := l.volume.Clean(ctx)
		r.add(began, int(moved.Moved))
		if err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// dirty overwrites blocks until enough of the working set is garbage.
func (s *slotLoad) dirty(ctx context.Context) error {
	var under []*client.Completion
	for range s.job.Size / s.job.Case.Block / dirtied {
		off, p := s.place()
		s.content.fill(p, off, s.job.Gen)
		if under = append(under, s.volume.WriteAsync(p, off)); len(under) <= s.job.Case.Depth {
			continue
		}
		if err := under[0].Wait(ctx); err != nil {
			return err
		}
		under = under[1:]
	}
	for _, c := range under {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return s.volume.Flush(ctx)
}

// unlessOver drops an error that came of the load's end.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
