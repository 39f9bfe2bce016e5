package client

// vec is one logical buffer in several pieces.
type vec [][]byte

func (v vec) size() (n int) {
	for _, p := range v {
		n += len(p)
	}
	return n
}

// slice appends the parts of [off, off+n) to dst.
func (v vec) slice(dst [][]byte, off, n int) [][]byte {
	for _, p := range v {
		if n == 0 {
			break
		}
		if off >= len(p) {
			off -= len(p)
			continue
		}
		part := p[off:min(len(p), off+n)]
		dst = append(dst, part)
		off, n = 0, n-len(part)
	}
	return dst
}

// copyAt copies src to offset off.
func (v vec) copyAt(src []byte, off int) {
	for _, p := range v {
		if len(src) == 0 {
			return
		}
		if off >= len(p) {
			off -= len(p)
			continue
		}
		n := copy(p[off:], src)
		src, off = src[n:], 0
	}
}

// readAt copies what is at offset off to dst.
func (v vec) readAt(dst []byte, off int) {
	for _, p := range v {
		if len(dst) == 0 {
			return
		}
		if off >= len(p) {
			off -= len(p)
			continue
		}
		dst = dst[copy(dst, p[off:]):]
		off = 0
	}
}

// zero clears [off, off+n).
func (v vec) zero(off, n int) {
	var parts [8][]byte
	for _, p := range v.slice(parts[:0], off, n) {
		clear(p)
	}
}
