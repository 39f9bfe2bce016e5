package sim

import "time"

// process is a running program: it has a clock, may stand still for a while, and
// dies. Its timers belong to one life.
type process struct {
	l        *loop
	at       node
	life     int
	up       bool
	standing time.Duration // until when it stands still
	skew     time.Duration // of its clock
}

// clock is the process's monotonic clock.
func (p *process) clock() time.Duration { return p.l.now + p.skew }

// do runs f now, or when the process moves again, unless it dies before.
func (p *process) do(f func()) {
	life := p.life
	if wait := p.standing - p.l.now; wait > 0 {
		p.l.after(wait, func() {
			if p.life == life {
				p.do(f)
			}
		})
		return
	}
	f()
}

// after runs f later, unless the process dies before.
func (p *process) after(d time.Duration, f func()) {
	life := p.life
	p.l.after(d, func() {
		if p.life == life && p.up {
			p.do(f)
		}
	})
}

// pause makes the process stand still.
func (p *process) pause(d time.Duration) { p.standing = max(p.standing, p.l.now+d) }

// end ends this life.
func (p *process) end() {
	p.life++
	p.up, p.standing = false, 0
}
