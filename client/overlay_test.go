package client

import (
	"bytes"
	"testing"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

func pendingWrite(id write.WriteID, start, count int, fill byte) *payload {
	data := bytes.Repeat([]byte{fill}, count*layout.BlockSize)
	return &payload{id: id, r: stripe.Range{Start: layout.BlockNumber(start), Count: uint32(count), Kind: stripe.Write},
		data: data, buf: &buffer{whole: data}, uncut: uint32(count), left: layout.BlockCount(count)}
}

func pendingClear(id write.WriteID, start, count int) *payload {
	return &payload{id: id, r: stripe.Range{Start: layout.BlockNumber(start), Count: uint32(count), Kind: stripe.Discard}, uncut: uint32(count)}
}

// cutOf makes a stripe of blocks of writes; each part is a range.
func cutOf(parts ...[3]int) *write.Stripe { // write, start, count; write 0: a discard
	s := &write.Stripe{Header: &stripe.Header{}}
	at := layout.BlockCount(0)
	for _, p := range parts {
		r := stripe.Range{Start: layout.BlockNumber(p[1]), Count: uint32(p[2]), Kind: stripe.Write}
		if p[0] == 0 {
			r.Kind = stripe.Discard
		} else {
			s.Pieces = append(s.Pieces, write.Piece{Write: write.WriteID(p[0]), Blocks: layout.BlockCount(p[2]), At: at})
			at += layout.BlockCount(p[2])
		}
		if n := len(s.Header.Ranges); n > 0 && s.Header.Ranges[n-1].Kind == r.Kind && s.Header.Ranges[n-1].Start+layout.BlockNumber(s.Header.Ranges[n-1].Count) == r.Start {
			s.Header.Ranges[n-1].Count += r.Count // as the core joins them
			continue
		}
		s.Header.Ranges = append(s.Header.Ranges, r)
	}
	return s
}

func TestWritesLeaveTheOverlayAsTheyAreCut(t *testing.T) {
	var o overlay
	for _, p := range []*payload{pendingWrite(1, 0, 4, 1), pendingWrite(2, 4, 4, 2), pendingClear(3, 8, 2), pendingClear(4, 10, 2), pendingWrite(5, 0, 1, 5)} {
		o.push(p)
	}
	o.applied(cutOf([3]int{1, 0, 4}, [3]int{2, 4, 1}))
	if o.writes.len() != 4 || (*o.writes.at(0)).id != 2 || (*o.writes.at(0)).uncut != 3 {
		t.Fatalf("after the first stripe: %d writes, the front %+v", o.writes.len(), (*o.writes.at(0)))
	}
	o.applied(cutOf([3]int{2, 5, 3}, [3]int{0, 8, 2}, [3]int{0, 10, 2}))
	if o.writes.len() != 1 || (*o.writes.at(0)).id != 5 {
		t.Fatalf("after the second stripe: %d writes", o.writes.len())
	}
	o.applied(cutOf([3]int{5, 0, 1}))
	if o.writes.len() != 0 {
		t.Fatalf("%d writes are left", o.writes.len())
	}
}

// TestAWriteRefusedInPartDoesNotHoldUpLaterOnes: for want of space a write that was
// cut in part is given up, and told of only when its part is acknowledged.
func TestAWriteRefusedInPartDoesNotHoldUpLaterOnes(t *testing.T) {
	for name, next := range map[string]*payload{"a write": pendingWrite(2, 100, 3, 2), "its repeat": pendingWrite(2, 4, 3, 2), "a discard": pendingClear(2, 4, 3)} {
		var o overlay
		refused := pendingWrite(1, 0, 10, 1)
		o.push(refused)
		o.applied(cutOf([3]int{1, 0, 4}))
		o.push(next)
		id := 2
		if next.r.Kind == stripe.Discard {
			id = 0
		}
		o.applied(cutOf([3]int{id, int(next.r.Start), 3}))
		if o.writes.len() != 0 {
			t.Errorf("%s: %d writes are left", name, o.writes.len())
		}
		refused.fail()
		o.drop(refused)
		if refused.left != 4 {
			t.Errorf("%s: %d blocks of the refused write are kept, 4 are in the log", name, refused.left)
		}
	}
}

func TestTheNewestPendingWriteShows(t *testing.T) {
	v := &Volume{}
	for _, p := range []*payload{pendingWrite(1, 0, 8, 1), pendingClear(2, 2, 2), pendingWrite(3, 3, 2, 3)} {
		v.overlay.push(p)
	}
	var r readPlan
	v.placePending(&r, layout.Range{Start: 1, Count: 9})
	got := make([]byte, 9)
	for _, c := range r.copies {
		for i := 0; i < len(c.data); i += layout.BlockSize {
			got[(c.at+i)/layout.BlockSize] += c.data[i]
		}
	}
	if want := []byte{1, 0, 3, 3, 1, 1, 1, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(r.zeros) != 1 || r.zeros[0] != (layout.Range{Start: 2, Count: 1}) || r.covered[7] || !r.covered[1] {
		t.Errorf("zeros %v, covered %v", r.zeros, r.covered)
	}
}
