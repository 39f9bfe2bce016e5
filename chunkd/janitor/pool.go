package janitor

import (
	"context"
	"sync"

	"strake/internal/layout"
)

// idleLinks bounds the idle links to one address.
const idleLinks = 8

// pool keeps idle links by address.
type pool struct {
	dial dialFunc
	cell layout.CellID

	mu     sync.Mutex
	idle   map[string][]*link // guarded by mu
	closed bool               // guarded by mu
}

func newPool(dial dialFunc, cell layout.CellID) *pool {
	return &pool{dial: dial, cell: cell, idle: map[string][]*link{}}
}

// with runs do with a link to an address. A link that idled may have been closed
// by its server meanwhile: then do runs again with a new one.
func (p *pool) with(ctx context.Context, addr string, do func(*link) error) error {
	if l := p.take(addr); l != nil {
		err := do(l)
		p.put(addr, l, err)
		if usable(err) || ctx.Err() != nil {
			return err
		}
	}
	l, err := connect(ctx, p.dial, addr, p.cell)
	if err != nil {
		return err
	}
	err = do(l)
	p.put(addr, l, err)
	return err
}

func (p *pool) take(addr string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[addr]
	if len(list) == 0 {
		return nil
	}
	l := list[len(list)-1]
	p.idle[addr] = list[:len(list)-1]
	return l
}

func (p *pool) put(addr string, l *link, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !usable(err) || len(p.idle[addr]) >= idleLinks {
		l.nc.Close()
		return
	}
	p.idle[addr] = append(p.idle[addr], l)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, list := range p.idle {
		for _, l := range list {
			l.nc.Close()
		}
	}
	p.idle = nil
}
