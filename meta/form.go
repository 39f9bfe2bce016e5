package meta

import (
	"slices"
	"strings"
)

// peerView is what one metadata server said of itself, or that it said nothing.
type peerView struct {
	address string
	silent  string // why there is no answer; empty when there is one
	id      string
	empty   bool
	wiped   bool
	formed  bool // it knows a cell, or holds commands of one
	peers   []string
}

// step is what a server without raft state does next.
type step int

const (
	stepWait step = iota // look again
	stepForm             // make the group and start
	stepJoin             // start empty: the group is being made
	stepAsk              // a cell exists: start only when it says that this server is new
)

// decide says what a server without raft state does, and why. A cell forms once:
// when all listed servers answer, are empty, and list the same servers. The
// first of them in order makes the group; the others start and wait for it.
//
// A server that lost its state must not start under its old name, for it no
// longer knows what it voted for and acknowledged. What it acknowledged, a
// majority stored; so while less than a majority is lost, one of the others
// holds a command and says so. That is why all must answer, and why one that
// holds raft state but no command (the group is being made, or no leader was
// elected yet) does not count as a cell.
func decide(self peerView, others []peerView) (step, string) {
	if self.wiped {
		return stepAsk, "this server's directory was a member's and lost its state"
	}
	if !slices.Contains(self.peers, self.address) {
		return stepAsk, "this server is not among the peers that form the cell"
	}
	for _, o := range others {
		if o.silent == "" && o.formed {
			return stepAsk, o.address + " is a member of a cell already and this server's directory is empty"
		}
	}
	forming := false
	for _, o := range others {
		switch {
		case o.silent != "":
			return stepWait, "waiting for " + o.address + ": " + o.silent
		case o.id != o.address:
			return stepWait, o.address + " says that it is " + o.id + ": each server must advertise the address that the others list"
		case o.wiped:
			return stepWait, o.address + " lost its state: empty its directory to form a new cell"
		case !slices.Equal(o.peers, self.peers):
			return stepWait, o.address + " was started with other peers (" + strings.Join(o.peers, ",") + ") than this server (" + strings.Join(self.peers, ",") + ")"
		}
		forming = forming || !o.empty
	}
	switch {
	case forming:
		return stepJoin, "the cell is being formed"
	case self.address == self.peers[0]:
		return stepForm, "all peers are there and empty"
	}
	return stepJoin, "waiting for " + self.peers[0] + " to form the cell"
}
