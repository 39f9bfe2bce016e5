package recovery

import (
	"fmt"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Plan is what a recoverer does.
type Plan struct {
	Cut     layout.Seq    // the log's last seq
	Flushed layout.Seq    // highest flushed seq in any header
	Seals   []stripe.Seal // one for each input segment, in its order; for CloseEpoch
	Tail    []Tail        // ascending by seq; append again and sync before CloseEpoch
	Lost    Lost          // with Input.Accept
	// InPlace are, with Input.Accept, the seals when too few servers are left to copy
	// the tail to: they hold it where it lies, and shards that lack it are made again.
	InPlace []stripe.Seal
	// Blocked says, with an error, who must come back, and Standing which seq they keep
	// out of reach that is known to stand; 0: it is not known of any.
	Blocked  []Blocker
	Standing layout.Seq
}

// Lost is what some answer showed above the cut, and was given up. What no answer
// showed is lost as well.
type Lost struct {
	Stripes uint64
	Last    layout.Seq // 0: none
	Blocks  uint64     // written by them, as far as a header could be read
}

// Tail is a standing stripe, not known to be flushed, that some participant
// doesn't have for sure: decode it from Have and append it again, with the same
// seq, the new epoch, and Plan.Flushed as its flushed seq.
type Tail struct {
	Header  *stripe.Header // of one of those that have it
	Segment layout.SegmentID
	Have    layout.Mask // shards that have it for sure
}

// Blocker is a shard that keeps a recovery from deciding.
type Blocker struct {
	Segment layout.SegmentID
	Shard   layout.ShardIndex
	Server  layout.ServerID
	Seq     layout.Seq // 0: the shard as a whole
	Reason  string
}

// String names server, shard and reason.
func (b Blocker) String() string {
	s := fmt.Sprintf("shard %d/%d on server %d", b.Segment, b.Shard, b.Server)
	if b.Seq != 0 {
		s += fmt.Sprintf(", seq %d", b.Seq)
	}
	return s + ": " + b.Reason
}

// Decide tells what stands (design §6.3 to 6.6). Errors: Unavailable when fewer
// than k shards of a segment answered, Undecided when the first seq that does
// not stand may yet stand or one that is known to stand may be out of reach,
// Corrupt when two headers of a copy contradict each other or a flushed stripe fell.
// With an error the plan holds only Blocked and Standing.
//
// With Input.Accept the log ends at the last seq that stands, whatever is undecided
// above it. What a cut, a root or a seal vouches for can't be given up, as nothing
// could tell where in the log it is missing. Error: InvalidArgument when the log
// ends lower than what was accepted.
func Decide(in Input) (Plan, error) {
	away := append(unanswered(in.Segments), blind(in.Segments)...)
	if in.Accept == nil {
		if blocked := unanswered(in.Segments); len(blocked) > 0 {
			return refuse(errs.Unavailable, blocked, "too few shards answered")
		}
		if len(away) > 0 {
			return refuse(errs.Undecided, away, "a stripe may lie unseen")
		}
	}
	l := newLog(in)
	for i := range in.Segments {
		if err := l.read(&in.Segments[i]); err != nil {
			return Plan{}, err
		}
	}
	must := l.flushed
	if in.Accept != nil {
		must = l.decided
	}
	if seq, blocked := l.unsure(must); seq != 0 {
		p, err := refuse(errs.Undecided, blocked, "seq %d is known to stand, and only shards that can't tell may have it", seq)
		p.Standing = seq
		return p, err
	}
	cut, blocked := l.end()
	switch {
	case cut < l.decided && len(away) > 0:
		return refuse(errs.Undecided, away, "the log stands up to seq %d, and seq %d is out of reach", l.decided, cut+1)
	case cut < l.decided:
		return Plan{}, errs.New(errs.Corrupt, "recover volume", "the log stands up to seq %d, and seq %d is nowhere: more is lost than the parity covers", l.decided, cut+1)
	case in.Accept != nil:
		return l.planWithLoss(cut)
	case len(blocked) > 0:
		return refuse(errs.Undecided, blocked, "seq %d may stand or fall", cut+1)
	case l.flushed > cut:
		return Plan{}, errs.New(errs.Corrupt, "recover volume", "the log ends at seq %d, and seq %d was flushed: more is lost than the parity covers", cut, l.flushed)
	}
	return Plan{Cut: cut, Flushed: l.flushed, Seals: l.seals(cut, l.sealed), Tail: l.tail(cut)}, nil
}

// planWithLoss takes what stands, in order, and gives up the rest.
func (l *log) planWithLoss(cut layout.Seq) (Plan, error) {
	if cut < *l.in.Accept {
		return Plan{}, errs.New(errs.InvalidArgument, "recover volume", "the log stands up to seq %d, more would be lost than what follows seq %d", cut, *l.in.Accept).
			WithHint("bring servers back, or accept the loss after seq %d", cut)
	}
	l.flushed = min(l.flushed, cut)
	return Plan{Cut: cut, Flushed: l.flushed, Seals: l.seals(cut, l.sealed), Tail: l.tail(cut),
		Lost: l.lost(cut), InPlace: l.seals(cut, l.standing)}, nil
}

// refuse makes the error that names who must come back.
func refuse(kind errs.Kind, blocked []Blocker, format string, args ...any) (Plan, error) {
	names := make([]string, 0, 4)
	for i, b := range blocked {
		if i == cap(names)-1 && len(blocked) > cap(names) {
			names = append(names, fmt.Sprintf("and %d more", len(blocked)-i))
			break
		}
		names = append(names, b.String())
	}
	err := errs.New(kind, "recover volume", format+"; %s", append(args, strings.Join(names, "; "))...)
	return Plan{Blocked: blocked}, err.WithHint("bring the named servers back, with their devices")
}

// unanswered names the silent shards of segments of which fewer than k answered.
func unanswered(segments []Segment) (out []Blocker) {
	for i := range segments {
		s := &segments[i]
		if silent := s.shards(func(sh *Shard) bool { return sh.State == Silent }); len(s.Shards)-silent.Count() < int(s.Geometry.K) {
			out = s.block(out, silent, 0)
		}
	}
	return out
}

// blind names the shards of segments in which a stripe may lie unseen.
func blind(segments []Segment) (out []Blocker) {
	for i := range segments {
		s, g := &segments[i], segments[i].Geometry
		unknown := s.shards(func(sh *Shard) bool { return sh.State != Listed })
		if unknown&g.ParityMask() == g.ParityMask() && unknown&g.DataMask() != 0 {
			out = s.block(out, unknown, 0)
		}
	}
	return out
}

// shards is the set of those that match; shards that are missing are silent.
func (s *Segment) shards(match func(*Shard) bool) (m layout.Mask) {
	for i := range s.Shards {
		if match(&s.Shards[i]) {
			m = m.With(layout.ShardIndex(i))
		}
	}
	return m
}

// block appends a blocker for each shard of the set.
func (s *Segment) block(out []Blocker, m layout.Mask, seq layout.Seq) []Blocker {
	for ; m != 0; m &= m - 1 {
		i, _ := m.Nth(0)
		sh := &s.Shards[i]
		b := Blocker{Segment: s.ID, Shard: i, Server: sh.Server, Seq: seq, Reason: sh.Reason}
		if st, listed := sh.find(seq); listed {
			b.Reason = st.Reason
		} else {
			b.Seq = 0
		}
		if b.Reason == "" {
			b.Reason = [...]string{"no answer", "cannot tell", "cannot tell"}[sh.State]
		}
		out = append(out, b)
	}
	return out
}
