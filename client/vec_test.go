package client

import (
	"bytes"
	"testing"
)

func TestPiecesActAsOneBuffer(t *testing.T) {
	whole := []byte("0123456789")
	v := vec{whole[:3], whole[3:3], whole[3:7], whole[7:]}
	for off := range 10 {
		for n := range 10 - off + 1 {
			if got := bytes.Join(v.slice(nil, off, n), nil); string(got) != string(whole[off:off+n]) {
				t.Fatalf("slice %d+%d: %q", off, n, got)
			}
			got := make([]byte, n)
			if v.readAt(got, off); string(got) != string(whole[off:off+n]) {
				t.Fatalf("read %d+%d: %q", off, n, got)
			}
		}
	}
	v.copyAt([]byte("abcd"), 2)
	v.zero(8, 2)
	if string(whole) != "01abcd67\x00\x00" || v.size() != 10 {
		t.Errorf("got %q", whole)
	}
}
