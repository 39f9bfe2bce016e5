package simclient

import (
	"slices"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// payload is what one write hands in; it stays until every stripe with a piece of
// it is flushed.
type payload struct {
	id     write.WriteID
	ranges []stripe.Range
	data   []byte
	left   layout.BlockCount // payload blocks whose stripes are not flushed yet
	done   bool              // answered
	answer func(error)
}

func (p *payload) block(i layout.BlockCount) []byte {
	return p.data[i*layout.BlockSize : (i+1)*layout.BlockSize]
}

// overlay holds the writes that the extent map does not show yet, oldest first.
type overlay struct {
	writes []*payload
	used   uint64 // blocks of the front write's ranges that the map shows already
}

func (o *overlay) push(p *payload) { o.writes = append(o.writes, p) }

// applied tells that the map now shows a stripe with these ranges.
func (o *overlay) applied(ranges []stripe.Range) {
	o.used += rangeBlocks(ranges)
	for len(o.writes) > 0 {
		total := rangeBlocks(o.writes[0].ranges)
		if o.used < total {
			return
		}
		o.used -= total
		o.writes = o.writes[1:]
	}
}

// drop takes a write out that will not be cut any further: it failed.
func (o *overlay) drop(p *payload) {
	i := slices.Index(o.writes, p)
	if i < 0 {
		return
	}
	if i == 0 {
		o.used = 0
	}
	o.writes = slices.Delete(o.writes, i, i+1)
}

func rangeBlocks(ranges []stripe.Range) (n uint64) {
	for _, r := range ranges {
		n += uint64(r.Count)
	}
	return n
}

// find gives a block's newest pending content; data is nil when it reads as zeros.
func (o *overlay) find(b layout.BlockNumber) (data []byte, ok bool) {
	for i := len(o.writes) - 1; i >= 0; i-- {
		if data, ok := o.writes[i].find(b); ok {
			return data, true
		}
	}
	return nil, false
}

// find looks a block up in one write; of its ranges the last one wins.
func (p *payload) find(b layout.BlockNumber) (data []byte, ok bool) {
	var at layout.BlockCount
	for _, r := range p.ranges {
		if b >= r.Start && b < r.Start+layout.BlockNumber(r.Count) {
			ok, data = true, nil
			if r.Kind == stripe.Write {
				data = p.block(at + layout.BlockCount(b-r.Start))
			}
		}
		if r.Kind == stripe.Write {
			at += layout.BlockCount(r.Count)
		}
	}
	return data, ok
}
