package ctl

import (
	"context"
	"io"
)

// pull reads a stream on a goroutine of its own, so that whoever waits for bytes
// can be told to stop: a read of a pipe or a terminal ends only when bytes come.
// One goroutine at a time uses it.
type pull struct {
	want chan []byte // where the next bytes go
	got  chan pulled
}

type pulled struct {
	n   int
	err error
}

func newPull(r io.Reader) *pull {
	p := &pull{want: make(chan []byte), got: make(chan pulled, 1)}
	go func() {
		for buf := range p.want {
			n, err := r.Read(buf)
			p.got <- pulled{n, err}
		}
	}()
	return p
}

// fill reads until buf is full, the stream ends (io.EOF), or ctx ends, which gives
// its cause; n bytes were read in any case. After an error it must not be called
// again: a read that goes on still has the rest of buf.
func (p *pull) fill(ctx context.Context, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		select {
		case p.want <- buf[n:]:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
		select {
		case g := <-p.got:
			n, err = n+g.n, g.err
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
	return n, err
}

// close ends the goroutine, as soon as the read that it may be in has ended.
func (p *pull) close() { close(p.want) }
