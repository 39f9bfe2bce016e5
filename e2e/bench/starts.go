package bench

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"strake/internal/errs"
)

// starts gives the slots of a load the times at which their operations begin: at
// a rate (an open loop), or each when the one before has ended (a closed one).
// Safe for concurrent use.
type starts struct {
	begin, end time.Time
	rate       float64      // a second; 0: a closed loop
	next       atomic.Int64 // the number of the next operation
}

func newStarts(begin time.Time, seconds, rate float64) *starts {
	return &starts{begin: begin, end: begin.Add(time.Duration(seconds * float64(time.Second))), rate: rate}
}

// each runs operations one after the other until the time is over. In an open
// loop an operation counts from when it was due, and one that the end came before
// counts as missed: latencies hold what a user would have waited.
func (s *starts) each(ctx context.Context, r *recorder, operate func(ctx context.Context, due time.Time) error) error {
	for {
		due, ok := s.take()
		if !ok {
			return nil
		}
		if s.rate > 0 && !time.Now().Before(s.end) {
			r.missed(due)
			continue
		}
		if err := operate(ctx, due); err != nil {
			return err
		}
	}
}

// take gives the next operation when its time has come: zero in a closed loop, whose
// first one is given also when the time was over before it began, as where a volume
// took long to open: a case without any operation has no figures. A slot that was
// idle when the operation was due and woke up late has it due at once: that lateness
// is the timer's. false: none is left.
func (s *starts) take() (due time.Time, ok bool) {
	if s.rate == 0 {
		return time.Time{}, s.next.Add(1) == 1 || time.Now().Before(s.end)
	}
	n := s.next.Add(1) - 1
	due = s.begin.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
	if !due.Before(s.end) {
		return due, false
	}
	if early := time.Until(due); early > 0 {
		time.Sleep(early)
		due = time.Now()
	}
	return due, true
}

// orNow is the time that an operation counts from.
func orNow(due time.Time) time.Time {
	if due.IsZero() {
		return time.Now()
	}
	return due
}

// echo is the near side of bare TCP at a rate: one message, one answer, as a
// victim that uses no disk and none of strake's code.
func echo(ctx context.Context, o order) (*tally, error) {
	conn, err := net.Dial("tcp", o.Address)
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "connect for an echo")
	}
	defer conn.Close()
	out, in := make([]byte, o.Ceiling.toPeer()), make([]byte, o.Ceiling.fromPeer())
	r := newRecorder(o.Seconds)
	r.start()
	err = newStarts(r.begin, o.Seconds, o.Rate).each(ctx, r, func(_ context.Context, due time.Time) error {
		began := orNow(due)
		if _, err := conn.Write(out); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, in); err != nil {
			return err
		}
		r.add(began, len(in))
		return nil
	})
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "exchange messages for an echo")
	}
	t, err := r.tally()
	return &t, err
}
