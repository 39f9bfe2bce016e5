package bench

import (
	"hash/crc32"
	"time"

	"strake/internal/erasure"
	"strake/internal/errs"
	"strake/internal/layout"
)

// computeBytes is what a compute ceiling works on: more than a core's own caches.
const computeBytes = 64 * mib

// compute measures one core: what it copies, checks or encodes per second.
func compute(name string, k, m int, seconds float64) (*tally, error) {
	var step func() (bytes int, err error)
	switch name {
	case "memory-copy":
		step = copySteps()
	case "crc32c":
		step = checksumSteps()
	case "encode":
		coder, err := erasure.For(layout.Geometry{K: uint8(k), M: uint8(m)})
		if err != nil {
			return nil, err
		}
		step = encodeSteps(coder, k, m)
	default:
		return nil, errs.New(errs.NotFound, "compute", "no ceiling %q", name)
	}
	r := newRecorder(seconds)
	r.start()
	for end := r.begin.Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); {
		began := time.Now()
		n, err := step()
		if err != nil {
			return nil, err
		}
		r.add(began, n)
	}
	t, err := r.tally()
	return &t, err
}

// copySteps copies a MiB at a time between buffers that no cache holds.
func copySteps() func() (int, error) {
	from, to := make([]byte, computeBytes), make([]byte, computeBytes)
	newContent().fill(from, 0, 1)
	copy(to, from) // so that its pages are there
	at := 0
	return func() (int, error) {
		n := copy(to[at:at+mib], from[at:at+mib])
		at = (at + mib) % computeBytes
		return n, nil
	}
}

// checksumSteps checks a MiB at a time, block by block.
func checksumSteps() func() (int, error) {
	from, table := make([]byte, computeBytes), crc32.MakeTable(crc32.Castagnoli)
	newContent().fill(from, 0, 1)
	at, sum := 0, uint32(0)
	return func() (int, error) {
		for b := range mib / layout.BlockSize {
			sum ^= crc32.Checksum(from[at+b*layout.BlockSize:][:layout.BlockSize], table)
		}
		at = (at + mib) % computeBytes
		return mib, nil
	}
}

// encodeSteps encodes a full stripe at a time; its bytes are the data's.
func encodeSteps(coder *erasure.Coder, k, m int) func() (int, error) {
	units := make([][]byte, k+m)
	for i := range units {
		units[i] = make([]byte, mib)
	}
	for i := range k {
		newContent().fill(units[i], int64(i)*mib, 1)
	}
	return func() (int, error) { return k * mib, coder.Encode(units) }
}
