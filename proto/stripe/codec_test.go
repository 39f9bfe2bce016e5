package stripe

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

var freeze = flag.Bool("freeze", false, "write samples that do not exist yet; existing ones are never changed")

func TestHeaderComesBackAsItWent(t *testing.T) {
	for name, h := range samples() {
		if err := h.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := h.AppendTo([]byte("before"))[len("before"):]
		if len(b) != h.EncodedLen() {
			t.Errorf("%s: %d bytes, EncodedLen says %d", name, len(b), h.EncodedLen())
		}
		got, n, err := Decode(append(b, "behind"...))
		if err != nil || n != len(b) || !reflect.DeepEqual(got, h) {
			t.Errorf("%s: got %+v (%d bytes, %v), want %+v (%d bytes)", name, got, n, err, h, len(b))
		}
	}
}

func TestFrozenHeadersAreReadAndWrittenAlike(t *testing.T) {
	for name, want := range samples() {
		path := filepath.Join("testdata", "v1-"+name+".hex")
		text, err := os.ReadFile(path)
		if *freeze && errors.Is(err, os.ErrNotExist) {
			text = []byte(hex.EncodeToString(want.AppendTo(nil)) + "\n")
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(string(bytes.TrimSpace(text)))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, _, err := Decode(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", path, got, err, want)
		}
		if !bytes.Equal(want.AppendTo(nil), b) {
			t.Errorf("%s: today's encoder writes other bytes", path)
		}
	}
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	for name, h := range samples() {
		whole := h.AppendTo(nil)
		for bit := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			if _, _, err := Decode(append(b, make([]byte, 64)...)); err == nil {
				t.Errorf("%s: bit %d flipped and accepted", name, bit)
			}
		}
		for n := range whole {
			if _, _, err := Decode(whole[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes were accepted", name, n, len(whole))
			}
		}
	}
}

func TestReaddressEqualsEncodingAgain(t *testing.T) {
	h := samples()["full"]
	for p := h.Participants(); p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		b := h.AppendTo(nil)
		Readdress(b, s)
		other := *h
		other.Shard = s
		if want := other.AppendTo(nil); !bytes.Equal(b, want) {
			t.Errorf("shard %d: got %x, want %x", s, b, want)
		}
	}
}

// FuzzDecode: what decodes encodes to the same bytes, and a header takes no
// more memory than a small multiple of its bytes.
func FuzzDecode(f *testing.F) {
	for _, h := range samples() {
		f.Add(h.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := Decode(b)
		if err != nil {
			if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Version {
				t.Fatalf("error of kind %v: %v", k, err)
			}
			return
		}
		if rangeLen*cap(h.Ranges)+crcLen*cap(h.CRCs) > n {
			t.Fatalf("%d ranges and %d checksums out of %d bytes", cap(h.Ranges), cap(h.CRCs), n)
		}
		if h.Offset < 0 || h.End() > layout.MaxShardLength {
			t.Fatalf("row at %d to %d", h.Offset, h.End())
		}
		if got := h.AppendTo(nil); !bytes.Equal(got, b[:n]) {
			t.Fatalf("encoded again: got %x, want %x", got, b[:n])
		}
	})
}

// Example_sizes says what a header costs beside its unit.
func Example_sizes() {
	size := func(name string, k, m uint8, blocks layout.BlockCount) {
		g := layout.Geometry{K: k, M: m}
		s := g.ShapeFor(blocks, 1)
		h := Header{Geometry: g, Shape: s, Ranges: make([]Range, 1)}
		h.CRCs = make([]uint32, h.Participants().Count()*int(s.UnitBlocks()))
		fmt.Printf("%-28s %d+%d: unit %7d, header %6d, %.2f %% of what is stored\n", name, k, m, s.Unit, h.EncodedLen(),
			100*float64(h.EncodedLen())/float64(max(1, int(s.Unit)+h.EncodedLen())))
	}
	size("one block", 4, 2, 1)
	size("128 KiB", 4, 2, 32)
	size("full stripe", 4, 2, 1024)
	size("full stripe", 8, 3, 2048)
	size("16 MiB moved to one shard", 1, 4, layout.MaxStripeBlocks)
	fmt.Println("longest header:", MaxLen)
	// Output:
	// one block                    4+2: unit    4096, header    120, 2.85 % of what is stored
	// 128 KiB                      4+2: unit   32768, header    300, 0.91 % of what is stored
	// full stripe                  4+2: unit 1048576, header   6252, 0.59 % of what is stored
	// full stripe                  8+3: unit 1048576, header  11372, 1.07 % of what is stored
	// 16 MiB moved to one shard    1+4: unit 16777216, header  82028, 0.49 % of what is stored
	// longest header: 163932
}
