package mclock

import (
	"time"

	"strake/internal/layout"
)

// MaxBytesOfRequest bounds one request: the longest payload of a frame.
const MaxBytesOfRequest = layout.MaxStripePayload

// Request is one piece of work. Its owner fills in the first fields before
// Enqueue or Admit and leaves the request alone until it is idle again. The core
// keeps no other memory for a request, so that queueing allocates nothing.
type Request struct {
	Tenant   layout.TenantID
	Class    layout.Class
	Write    bool
	Part     bool          // a later quantum of an operation that was counted already
	Service  bool          // what a client asks for on its own account: no sign that its class is in use
	Bytes    int           // 0 to MaxBytesOfRequest
	Deadline time.Duration // when it must be done; 0: never
	Owner    any           // the shell's; the core never looks

	// Late is set by Next when the deadline can't be met any more: the request
	// was taken out of its queue, is idle, and is not to be run.
	Late bool

	state      state
	extra      bool // runs beside the width
	flow       *flow
	next, prev *Request
	arrived    time.Duration
	dispatched time.Duration
	cost       time.Duration
}

// Queued is how long a request that runs was queued.
func (r *Request) Queued() time.Duration { return r.dispatched - r.arrived }

type state uint8

const (
	idle state = iota
	queued
	gated // waits at the gate of its flow
	running
)

// list is a queue of requests, linked through them.
type list struct {
	first, last *Request
	n           int
}

func (l *list) push(r *Request) {
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.n++
}

func (l *list) remove(r *Request) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.next, r.prev = nil, nil
	l.n--
}
