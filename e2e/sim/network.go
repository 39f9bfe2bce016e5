package sim

import (
	"time"

	"strake/internal/errs"
)

// node is a place in the network: metadata servers, chunk servers, clients.
type node int

// kind is what a message is about; faults may hit some kinds only.
type kind uint8

const (
	kindMeta kind = iota
	kindAppend
	kindRead
	kindSync
	kindControl // fence, create, finalize, delete, heartbeat
	kinds
)

// network carries messages with loss, delay, repeats and partitions.
type network struct {
	l       *loop
	blocked map[[2]node]bool         // from, to
	slow    map[node]time.Duration   // added to each message of a node
	bad     [kinds]weather           // per kind
	epochs  map[node]int             // lives of a node's process: messages of an old one are lost
	lost    func(k kind, reply bool) // told of each lost message
}

// weather is what happens to messages of a kind, in thousandths.
type weather struct{ lose, repeat, delay int }

func newNetwork(l *loop) *network {
	return &network{l: l, blocked: map[[2]node]bool{}, slow: map[node]time.Duration{}, epochs: map[node]int{}, lost: func(kind, bool) {}}
}

const (
	leastDelay = 40 * time.Microsecond
	usualDelay = 300 * time.Microsecond
	longDelay  = 400 * time.Millisecond
)

// heal ends all partitions and bad weather.
func (n *network) heal() {
	clear(n.blocked)
	clear(n.slow)
	n.bad = [kinds]weather{}
}

// send carries a message; deliver runs at the other end, once, twice or never.
func (n *network) send(from, to node, k kind, reply bool, deliver func()) {
	w := &n.bad[k]
	if n.blocked[[2]node{from, to}] || n.l.chance(w.lose) {
		n.lost(k, reply)
		return
	}
	n.carry(from, to, w, deliver)
	if n.l.chance(w.repeat) {
		n.carry(from, to, w, deliver)
	}
}

func (n *network) carry(from, to node, w *weather, deliver func()) {
	d := n.l.between(leastDelay, usualDelay) + n.slow[from] + n.slow[to]
	if n.l.chance(w.delay) {
		d += n.l.between(0, longDelay)
	}
	life := n.epochs[to]
	n.l.after(d, func() {
		if n.epochs[to] == life {
			deliver()
		}
	})
}

// restarted drops what is on its way to a node's old life.
func (n *network) restarted(at node) { n.epochs[at]++ }

// broken is what a client learns of a connection to a dead process.
func broken(what string) error { return errs.New(errs.Unavailable, "", "%s: connection refused", what) }
