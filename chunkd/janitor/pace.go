package janitor

import (
	"context"
	"sync"
	"time"
)

// burst is how far work may run ahead of its rate.
const burst = 200 * time.Millisecond

// pace holds work to a rate of bytes a second. The zero value has none.
type pace struct {
	mu   sync.Mutex
	rate int64     // guarded by mu; 0: no ceiling
	next time.Time // guarded by mu: when the bytes taken so far are due
}

// set changes the rate.
func (p *pace) set(rate int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// take waits until n bytes are due. Error: ctx's.
func (p *pace) take(ctx context.Context, n int64) error {
	wait := p.due(n, time.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// due books n bytes and tells how long they must wait.
func (p *pace) due(n int64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate <= 0 {
		return 0
	}
	if earliest := now.Add(-burst); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return p.next.Sub(now)
}
