package read

import (
	"fmt"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
)

// ActionKind says what the shell is to do.
type ActionKind uint8

const (
	// Send Request. Its reply, or the failure to send it, is told by Replied.
	Send ActionKind = iota + 1
	// Cancel Request: when that is done its buffers are nobody's. Its end need
	// not be told.
	Cancel
	// Decode a group; the result is told by Decoded. All Cancels before it must
	// have returned.
	Decode
	// Report a bad shard, so that it gets repaired.
	Report
	// Refresh a segment's placement; the end is told by Refreshed.
	Refresh
	// Done: the buffer holds the bytes. The Op may be started again.
	Done
	// Fail with Err. The Op may be started again.
	Fail
)

// Action is one thing to do. Which fields count depends on Kind.
type Action struct {
	Kind    ActionKind
	Request *Request // Send, Cancel
	Group   *Group   // Decode
	Segment layout.SegmentID
	Shard   layout.ShardIndex  // Report
	Reason  errs.Kind          // Report
	Offset  layout.ShardOffset // Report: where it was found
	Err     error              // Fail
}

// String tells an action in one line, for golden tests and logs.
func (a Action) String() string {
	switch a.Kind {
	case Send:
		return "send " + a.Request.String()
	case Cancel:
		return fmt.Sprintf("cancel %d", a.Request.ID)
	case Decode:
		return "decode " + a.Group.String()
	case Report:
		return fmt.Sprintf("report %d/%d %v at %d", a.Segment, a.Shard, a.Reason, a.Offset)
	case Refresh:
		return fmt.Sprintf("refresh %d", a.Segment)
	case Done:
		return "done"
	case Fail:
		return fmt.Sprintf("fail %v: %v", errs.KindOf(a.Err), a.Err)
	}
	return "nothing"
}

// String tells a request in one line.
func (r *Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: shard %d/%d", r.ID, r.Segment, r.Shard)
	for _, g := range r.Ranges {
		fmt.Fprintf(&b, " %d+%d", g.Offset, g.Length)
	}
	if r.Headers {
		b.WriteString(" with headers")
		return b.String()
	}
	b.WriteString(" into")
	for _, s := range r.Scatter {
		fmt.Fprintf(&b, " %d+%d", s.Offset, s.Length)
	}
	return b.String()
}
