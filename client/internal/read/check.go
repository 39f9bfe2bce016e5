package read

import (
	"encoding/binary"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Verdict is what became of a request.
type Verdict struct {
	Err     error            // it failed as a whole
	Bad     []int            // blocks, counted over all ranges, whose bytes are wrong
	headers []*stripe.Header // of a degraded request: one for each run
}

// Check judges a reply: the error it ended with, else its meta and its bytes in
// range order, cut at block boundaries only. It changes nothing, so that many
// replies can be checked at once.
func (r *Request) Check(meta []byte, bufs [][]byte, err error) Verdict {
	switch {
	case err != nil:
		return Verdict{Err: err}
	case r.Headers:
		return r.checkPeer(meta, bufs)
	}
	bad, err := Verify(bufs, meta)
	return Verdict{Err: err, Bad: bad}
}

// Verify checks blocks against the encoded checksums of a reply and gives the
// numbers of those that differ. The error is Corrupt when the counts differ.
func Verify(bufs [][]byte, crcs []byte) (bad []int, err error) {
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	if total%layout.BlockSize != 0 || len(crcs) != total/layout.BlockSize*4 {
		return nil, errs.New(errs.Corrupt, "check reply", "%d bytes of checksums for %d bytes", len(crcs), total)
	}
	i := 0
	for _, b := range bufs {
		for ; len(b) >= layout.BlockSize; b = b[layout.BlockSize:] {
			if stripe.BlockCRC(b[:layout.BlockSize]) != binary.LittleEndian.Uint32(crcs[4*i:]) {
				bad = append(bad, i)
			}
			i++
		}
		if len(b) > 0 {
			return nil, errs.New(errs.Corrupt, "check reply", "a buffer ends inside a block")
		}
	}
	return bad, nil
}

// checkPeer checks a participant's rows by its own headers.
func (r *Request) checkPeer(meta []byte, bufs [][]byte) Verdict {
	headers, err := r.decodeHeaders(meta)
	if err != nil {
		return Verdict{Err: err}
	}
	bytes := slices.Concat(bufs...)
	if len(bufs) == 1 {
		bytes = bufs[0]
	}
	if len(bytes) != r.bytes {
		return Verdict{Err: errs.New(errs.Corrupt, "check reply", "%d bytes, asked were %d", len(bytes), r.bytes)}
	}
	v := Verdict{headers: headers}
	at := 0
	for i := range r.runs {
		crcs := unitCRCs(headers[i], r.Shard, &r.runs[i])
		for _, crc := range crcs {
			if stripe.BlockCRC(bytes[at*layout.BlockSize:(at+1)*layout.BlockSize]) != crc {
				v.Bad = append(v.Bad, at)
			}
			at++
		}
	}
	return v
}

// decodeHeaders finds the header of each run, and checks that it speaks of it.
func (r *Request) decodeHeaders(meta []byte) ([]*stripe.Header, error) {
	if len(meta) < 4 {
		return nil, errs.New(errs.Corrupt, "check reply", "%d bytes of stripe headers", len(meta))
	}
	count, rest := binary.LittleEndian.Uint32(meta), meta[4:]
	headers := make([]*stripe.Header, len(r.runs))
	found, last := 0, layout.ShardOffset(-1)
	for range count {
		h, n, err := stripe.Decode(rest)
		if err != nil {
			return nil, err
		}
		if h.Offset <= last {
			return nil, errs.New(errs.Corrupt, "check reply", "stripe headers don't ascend at %d", h.Offset)
		}
		rest, last = rest[n:], h.Offset
		for i := range r.runs {
			if r.runs[i].stripe != h.Offset {
				continue
			}
			if err := r.identify(h, &r.runs[i]); err != nil {
				return nil, err
			}
			headers[i] = h
			found++
		}
	}
	if len(rest) != 0 || found != len(r.runs) {
		return nil, errs.New(errs.Corrupt, "check reply", "headers for %d of %d stripes, %d bytes left over", found, len(r.runs), len(rest))
	}
	return headers, nil
}

// identify checks that a header is that of a run's stripe at this shard.
func (r *Request) identify(h *stripe.Header, p *run) error {
	wrong := h.Cell != r.cell && r.cell != 0 || h.Volume != p.volume && p.volume != 0 || h.Segment != r.Segment ||
		h.Shard != r.Shard || h.Geometry != r.Geometry || h.Shape != p.shape || h.Epoch == 0
	if wrong {
		return errs.New(errs.Corrupt, "check reply", "the header at %d is of cell %d, volume %d, segment %d, shard %d, %v, epoch %d",
			h.Offset, h.Cell, h.Volume, h.Segment, h.Shard, h.Geometry, h.Epoch)
	}
	return nil
}

// unitCRCs gives the checksums of a run's rows in a shard.
func unitCRCs(h *stripe.Header, shard layout.ShardIndex, p *run) []uint32 {
	from := int(p.offset-p.stripe) / layout.BlockSize
	return h.UnitCRCs(shard)[from : from+p.length/layout.BlockSize]
}
