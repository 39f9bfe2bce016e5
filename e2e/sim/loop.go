package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// loop is virtual time: a queue of events, and the log of what happened.
type loop struct {
	now   time.Duration
	queue events
	count uint64
	tie   *rand.PCG  // breaks ties of time
	rand  *rand.Rand // everything that is decided in the course of the run
	log   record
	err   error // the first property that broke: the loop stops
}

func newLoop(seed uint64) *loop {
	l := &loop{tie: rand.NewPCG(seed, 1), rand: rand.New(rand.NewPCG(seed, 2))}
	l.log.hash = fnvOffset
	return l
}

// event is something that happens at a time.
type event struct {
	at  time.Duration
	tie uint64
	run func()
}

// events is a heap of events, the next one first.
type events []event

func (q events) before(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].tie < q[j].tie
}

func (q *events) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *events) pop() event {
	h := *q
	e, n := h[0], len(h)-1
	h[0], h[n] = h[n], event{}
	h = h[:n]
	*q = h
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if h.before(c, least) {
				least = c
			}
		}
		if least == i {
			return e
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// after runs f in a while.
func (l *loop) after(d time.Duration, f func()) {
	l.count++
	l.queue.push(event{l.now + max(d, 0), l.tie.Uint64()&^0xffff | l.count&0xffff, f})
}

// mostEvents bounds a run: something goes round and round in it.
const mostEvents = 4_000_000

// run handles events until stop says so, a property breaks, or time is up.
func (l *loop) run(until time.Duration, stop func() bool) {
	for l.err == nil && len(l.queue) > 0 && l.queue[0].at <= until && !stop() {
		e := l.queue.pop()
		l.now = e.at
		e.run()
		if l.count > mostEvents {
			l.fail("it does not end: %d events in %v", l.count, l.now)
		}
	}
}

// fail stops the run: a property broke.
func (l *loop) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
		l.note("broken")
	}
}

// note adds an event to the log.
func (l *loop) note(what string, numbers ...uint64) {
	n := line{at: l.now, what: what}
	copy(n.numbers[:], numbers)
	n.count = uint8(len(numbers))
	l.log.add(n)
}

// between draws a duration.
func (l *loop) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(l.rand.Int64N(int64(hi-lo)+1))
}

// chance is true p times of 1000.
func (l *loop) chance(p int) bool { return l.rand.IntN(1000) < p }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	tailLines = 160 // lines of the log that are kept for a failure
)

// line is one event of the log.
type line struct {
	at      time.Duration
	what    string
	numbers [4]uint64
	count   uint8
}

func (n *line) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12.6f %s", n.at.Seconds(), n.what)
	for _, v := range n.numbers[:n.count] {
		fmt.Fprintf(&b, " %d", v)
	}
	return b.String()
}

// record hashes all lines and keeps the last ones.
type record struct {
	hash  uint64
	lines [tailLines]line
	n     int
	trace io.Writer
}

func (r *record) add(n line) {
	r.lines[r.n%tailLines] = n
	r.n++
	h := r.hash
	for i := range len(n.what) {
		h = (h ^ uint64(n.what[i])) * fnvPrime
	}
	for _, v := range [...]uint64{uint64(n.at), n.numbers[0], n.numbers[1], n.numbers[2], n.numbers[3]} {
		h = (h ^ v) * fnvPrime
		h ^= h >> 29
	}
	r.hash = h
	if r.trace != nil {
		fmt.Fprintln(r.trace, n.String())
	}
}

// tail gives the last lines.
func (r *record) tail() []string {
	var out []string
	for i := max(0, r.n-tailLines); i < r.n; i++ {
		out = append(out, r.lines[i%tailLines].String())
	}
	return out
}
