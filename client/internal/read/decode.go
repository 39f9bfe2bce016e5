package read

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Coder computes lost units; *erasure.Coder is one.
type Coder interface {
	Reconstruct(units [][]byte, have, zero, want layout.Mask) error
}

// Decode computes the group's runs into the caller's buffer and checks them by
// the lost unit's checksums. bytes are the replies of Peers, by shard; the buffer
// holds what Loans names. It changes nothing but the buffer, so that groups can be
// decoded at once. The error is Corrupt.
func (g *Group) Decode(c Coder, buffer []byte, bytes *[layout.MaxShards][]byte) error {
	owner := g.group.owner
	at := 0
	for i := range g.group.runs {
		r := &g.group.runs[i]
		var units [layout.MaxShards][]byte
		for p := g.group.good &^ g.group.lent; p != 0; p &= p - 1 {
			s, _ := p.Nth(0)
			units[s] = bytes[s][at : at+r.length]
		}
		for j := range g.group.loans {
			if l := &g.group.loans[j]; g.group.borrowed(l.shard) {
				units[l.shard] = buffer[l.at[i] : l.at[i]+int64(r.length)]
			}
		}
		out := buffer[r.into : r.into+int64(r.length)]
		units[owner.Shard] = out
		zero := r.geometry.DataMask() &^ r.shape.Data
		if err := c.Reconstruct(units[:r.geometry.Shards()], g.group.good, zero, layout.Mask(0).With(owner.Shard)); err != nil {
			return errs.Wrap(err, "decode shard %d/%d at %d", r.segment, owner.Shard, r.offset)
		}
		for b, crc := range unitCRCs(g.group.headers[i], owner.Shard, r) {
			if stripe.BlockCRC(out[b*layout.BlockSize:(b+1)*layout.BlockSize]) != crc {
				return errs.New(errs.Corrupt, "decode shard", "shard %d/%d at %d: the decoded block differs from its checksum",
					r.segment, owner.Shard, r.offset+layout.ShardOffset(b*layout.BlockSize))
			}
		}
		at += r.length
	}
	return nil
}
