package smallfile

import (
	"bytes"
	"encoding/hex"
	"testing"

	"strake/internal/vfs"
)

// frozen is a file that holds `body`.
const frozen = "7374726b6d65746170b26dc304000000626f6479"

func FuzzDecode(f *testing.F) {
	f.Add([]byte("body"), uint(3))
	f.Add(encode([]byte(`{"Member":"a:1","Cell":7}`)), uint(70))
	f.Fuzz(func(t *testing.T, b []byte, bit uint) {
		if body, err := decode(b); err == nil && !bytes.Equal(encode(body), b) {
			t.Fatalf("%x does not round-trip", b)
		}
		whole := encode(b)
		if body, err := decode(whole); err != nil || !bytes.Equal(body, b) {
			t.Fatalf("got %x, %v; want %x", body, err, b)
		}
		if _, err := decode(flip(whole, bit)); err == nil {
			t.Fatalf("bit %d flipped is taken", bit)
		}
	})
}

// flip gives b with one bit changed.
func flip(b []byte, bit uint) []byte {
	c := bytes.Clone(b)
	c[bit/8%uint(len(b))] ^= 1 << (bit % 8)
	return c
}

func TestTheFormatIsFrozen(t *testing.T) {
	b, err := hex.DecodeString(frozen)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := decode(b); err != nil || string(body) != "body" || !bytes.Equal(encode(body), b) {
		t.Errorf("got %q, %v; a file is written as %x now", body, err, encode([]byte("body")))
	}
}

func TestAValueIsReplacedAsAWhole(t *testing.T) {
	fs := vfs.NewMem(vfs.MemOptions{})
	if b, err := Read(fs, "f"); b != nil || err != nil {
		t.Fatalf("a file that is not there: %q, %v", b, err)
	}
	for _, want := range []string{"one", "another, longer", ""} {
		if err := Write(fs, "f", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(fs, "f"); string(got) != want || err != nil {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
}
