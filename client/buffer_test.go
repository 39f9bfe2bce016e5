package client

import "testing"

func TestABufferGoesBackWithItsLastReference(t *testing.T) {
	var p buffers
	for _, n := range []int{1, smallestBuffer - 1, smallestBuffer, smallestBuffer + 1, maxPiece - 1, maxPiece, maxPiece + 4096} {
		b := p.get(n)
		if len(b.whole) < n || len(b.whole) > 2*max(n, smallestBuffer) || (b.home != nil) != (n <= maxPiece) {
			t.Errorf("%d bytes: a buffer of %d, kept: %v", n, len(b.whole), b.home != nil)
		}
		b.retain()
		b.release()
		if b.refs.Load() != 1 {
			t.Errorf("%d references", b.refs.Load())
		}
		b.release()
	}
}
