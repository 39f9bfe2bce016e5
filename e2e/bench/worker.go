package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"strake/internal/errs"
)

// closeTimeout bounds the end of a worker's load.
const closeTimeout = 20 * time.Second

// What a worker is ordered to do, in the order that a run gives them.
const (
	orderFill     = "fill"     // write a volume once
	orderOpen     = "open"     // take a job
	orderWarm     = "warm"     // run it unmeasured
	orderRun      = "run"      // run it
	orderCheck    = "check"    // read back what was written
	orderClose    = "close"    // give the job up
	orderServe    = "serve"    // be the far side of a ceiling
	orderExchange = "exchange" // be its near side
	orderCompute  = "compute"  // measure what one core does in memory
	orderEcho     = "echo"     // be its near side at a rate, one message at a time
	orderBeside   = "beside"   // take a second job, that goes through the first one's connections
	orderBegin    = "begin"    // begin it
	orderEnd      = "end"      // await its end, and give it up
	orderNote     = "note"     // write a volume, and note how far it is, until killed
)

// order is one line of JSON to a worker.
type order struct {
	Do      string
	Job     *job     `json:",omitempty"` // fill, open, beside, note
	Seconds float64  `json:",omitempty"` // run, begin, exchange, echo, compute
	Gen     uint64   `json:",omitempty"` // run: of the blocks it writes
	Ceiling *ceiling `json:",omitempty"` // serve, exchange, echo
	Address string   `json:",omitempty"` // exchange, echo
	Name    string   `json:",omitempty"` // compute
	Dir     string   `json:",omitempty"` // compute: where files may go
	Rate    float64  `json:",omitempty"` // echo: messages a second
	K, M    int      `json:",omitempty"` // compute
	Notes   string   `json:",omitempty"` // note: path of the file
}

// report is a worker's answer to an order, one line of JSON.
type report struct {
	Kind    errs.Kind `json:",omitempty"` // of the error; 0: none
	Error   string    `json:",omitempty"`
	Address string    `json:",omitempty"` // serve
	Tally   *tally    `json:",omitempty"` // run, end, exchange, compute
	Blocks  int64     `json:",omitempty"` // check: blocks compared
}

// Work is a worker: it takes orders from in until that ends, and answers on out.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{}
	defer w.end()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errs.As(err, errs.InvalidArgument, "read an order")
		}
		r, err := w.do(ctx, o)
		if err != nil {
			r = report{Kind: errs.KindOf(err), Error: err.Error()}
		}
		if err := answers.Encode(r); err != nil {
			return errs.As(err, errs.Unavailable, "answer an order")
		}
	}
}

// worker is the state of a worker between orders.
type worker struct {
	load   *load
	beside *besideLoad // nil: none
	peer   *peer
}

// besideLoad is a second load of the process.
type besideLoad struct {
	*load
	done  chan struct{} // nil until it begins
	tally tally         // set before done is closed
	err   error         // the same
}

func (w *worker) do(ctx context.Context, o order) (r report, err error) {
	switch o.Do {
	case orderFill:
		err = fill(ctx, *o.Job)
	case orderOpen:
		w.load, err = newLoad(ctx, *o.Job)
	case orderWarm:
		err = w.load.warm(ctx)
	case orderRun:
		r.Tally, err = w.run(ctx, o)
	case orderCheck:
		r.Blocks, err = w.load.check(ctx)
	case orderClose:
		err = w.close()
	case orderBeside:
		w.beside = &besideLoad{}
		w.beside.load, err = w.load.shared(ctx, *o.Job)
	case orderBegin:
		w.beside.begin(ctx, o.Seconds)
	case orderEnd:
		r.Tally, err = w.endBeside()
	case orderServe:
		r.Address, err = w.serve(*o.Ceiling)
	case orderExchange:
		r.Tally, err = exchange(ctx, *o.Ceiling, o.Address, o.Seconds)
	case orderNote:
		err = note(ctx, o)
	case orderEcho:
		r.Tally, err = echo(ctx, o)
	case orderCompute:
		if o.Name == diskWrite {
			r.Tally, err = writeDisk(ctx, o.Dir, o.K, o.M, o.Seconds)
		} else {
			r.Tally, err = compute(o.Name, o.K, o.M, o.Seconds)
		}
	default:
		err = errs.New(errs.Version, "work", "unknown order %q", o.Do)
	}
	return r, err
}

// run runs the job, under the profiler when that is asked for.
func (w *worker) run(ctx context.Context, o order) (*tally, error) {
	l := w.load
	l.job.Seconds, l.job.Gen = o.Seconds, max(o.Gen, l.job.Gen)
	if l.job.Profile != "" {
		f, err := os.Create(l.job.Profile)
		if err != nil {
			return nil, errs.As(err, errs.Unavailable, "write a profile")
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, errs.As(err, errs.Busy, "profile")
		}
		defer pprof.StopCPUProfile()
	}
	t, err := l.run(ctx)
	return &t, err
}

// begin runs the second load while other orders come.
func (b *besideLoad) begin(ctx context.Context, seconds float64) {
	b.job.Seconds, b.done = seconds, make(chan struct{})
	go func() {
		defer close(b.done)
		b.tally, b.err = b.run(ctx)
	}()
}

// endBeside waits for the second load and gives it up.
func (w *worker) endBeside() (*tally, error) {
	b := w.beside
	w.beside = nil
	if b == nil || b.load == nil {
		return nil, nil
	}
	if b.done != nil {
		<-b.done
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return &b.tally, errors.Join(b.err, b.close(ctx))
}

func (w *worker) serve(c ceiling) (string, error) {
	if w.peer != nil {
		w.peer.close()
	}
	var err error
	w.peer, err = servePeer(c)
	if err != nil {
		return "", err
	}
	return w.peer.address(), nil
}

func (w *worker) close() error {
	l := w.load
	w.load = nil
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return l.close(ctx)
}

// end gives up what is still held.
func (w *worker) end() {
	_, _ = w.endBeside()
	_ = w.close()
	if w.peer != nil {
		w.peer.close()
	}
}
