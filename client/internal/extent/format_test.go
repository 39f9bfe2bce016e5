package extent

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

var freeze = flag.Bool("freeze", false, "write the samples of the current format version")

// sampleRows are rows as they look in practice, and at the edges.
func sampleRows() map[string][]row {
	shape := func(r run) run { r.unit, r.mask = 1, 4; return r }
	return map[string][]row{
		"extents": {
			shape(run{start: 7, count: 1, segment: 40, offset: 12}).row(),
			run{start: 8, count: 1024, segment: 41, offset: 16383, unit: 256, mask: 15}.row(),
			run{start: 5000, count: 3, segment: 41, offset: 0, unit: 256, mask: 15, index: 1021}.row(),
			run{start: volumeEnd - 1, count: 1, segment: 1 << 63, offset: 1<<18 - 1, unit: 4096, mask: 1 << 15, index: 4095}.row(),
		},
		"live": {{3, 0}, {4, 65536}, {1 << 40, maxSegmentBlocks}},
		"inner": {
			PageRef{Segment: 9, Offset: 8192, Shape: layout.Shape{Unit: 65536, Data: 15}, Index: 3, Blocks: 1, CRC: 0xdeadbeef, First: 0}.row(),
			PageRef{Segment: 9, Offset: 8192, Shape: layout.Shape{Unit: 65536, Data: 15}, Index: 4, Blocks: 16, CRC: 1, First: 77}.row(),
		},
	}
}

var sampleKinds = map[string]struct {
	kind  Kind
	level uint8
}{"extents": {KindExtent, 0}, "live": {KindLive, 0}, "inner": {KindExtent, 1}}

func sampleRootPage() *rootPage {
	rows := sampleRows()
	return &rootPage{newNode(KindExtent, 1, rows["inner"]), newNode(KindLive, 0, rows["live"]), []row{{9, 17}, {12, 0}}}
}

func sampleRoot() Root {
	return encodeRoot(123456789, PageRef{Segment: 9, Offset: 1 << 20, Shape: layout.Shape{Unit: 4096, Data: 8}, Blocks: 1, CRC: 42})
}

// samples are encodings by today's code; the files hold those of version 1.
func samples() map[string][]byte {
	list := map[string][]byte{"root": sampleRoot(), "rootpage": sampleRootPage().encode(99)}
	for name, rows := range sampleRows() {
		list[name] = encodePage(sampleKinds[name].kind, sampleKinds[name].level, 0, rows)
	}
	return list
}

func TestTodaysCodeReadsAndWritesFrozenSamples(t *testing.T) {
	for name, today := range samples() {
		path := filepath.Join("testdata", name+"-v1.hex")
		text := hex.Dump(bytes.TrimRight(today, "\x00"))
		if *freeze {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		frozen, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(frozen) != text {
			t.Errorf("%s: got\n%swant\n%s", name, text, frozen)
		}
	}
}

func TestPagesRoundTrip(t *testing.T) {
	for name, rows := range sampleRows() {
		k := sampleKinds[name]
		b := encodePage(k.kind, k.level, 0, rows)
		n, err := decodePage(sealPage(b, k.kind, k.level, 0), b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := n.allRows(); !reflect.DeepEqual(got, rows) {
			t.Errorf("%s: got %v, want %v", name, got, rows)
		}
	}
	b := sampleRootPage().encode(99)
	p, err := decodeRootPage(sealPage(b, KindRoot, 0, 99), b)
	if err != nil {
		t.Fatal(err)
	}
	if again := p.encode(99); !bytes.Equal(again, b) {
		t.Error("the root page encodes differently after a round trip")
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	b := samples()["extents"]
	ref := sealPage(b, KindExtent, 0, 0)
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := decodePage(ref, b); !isKind(err, errs.Corrupt) {
			t.Fatalf("bit %d flipped: %v, want corrupt", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	root := sampleRoot()
	for i := range len(root) * 8 {
		root[i/8] ^= 1 << (i % 8)
		if _, err := Open(root); !isKind(err, errs.Corrupt) {
			t.Fatalf("bit %d of the root flipped: %v, want corrupt", i, err)
		}
		root[i/8] ^= 1 << (i % 8)
	}
}

func TestPageOfAnotherPlaceInTheTreeIsRefused(t *testing.T) {
	b := samples()["extents"]
	good := sealPage(b, KindExtent, 0, 0)
	for name, change := range map[string]func(*PageRef){
		"kind":  func(r *PageRef) { r.Kind = KindLive },
		"level": func(r *PageRef) { r.Level = 1 },
		"first": func(r *PageRef) { r.First = 1 },
		"crc":   func(r *PageRef) { r.CRC++ },
		"size":  func(r *PageRef) { r.Blocks = 2 },
	} {
		ref := good
		change(&ref)
		if _, err := decodePage(ref, b); !isKind(err, errs.Corrupt) {
			t.Errorf("%s differs: %v, want corrupt", name, err)
		}
	}
}

func TestRootRecordIsSmallAndTellsItsSeq(t *testing.T) {
	r := sampleRoot()
	covers, err := r.Covers()
	if err != nil || covers != 123456789 || len(r) > MaxRoot {
		t.Fatalf("covers %d, %v, %d bytes", covers, err, len(r))
	}
	if _, err := Open(r[:20]); !isKind(err, errs.Corrupt) || !strings.Contains(err.Error(), "20 bytes") {
		t.Fatalf("short root: %v", err)
	}
}

// FuzzPage: the decoder never panics, takes nothing but canonical pages, and
// what it took can be read. The checksum is made right so that the fuzzer gets
// past it.
func FuzzPage(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > MaxPageBlocks*layout.BlockSize {
			return
		}
		b = pad(append([]byte(nil), b...))
		if len(b) == 0 {
			return
		}
		ref := sealPage(b, Kind(b[5]), b[6], le64(b[8:]))
		if ref.Kind == KindRoot {
			if p, err := decodeRootPage(ref, b); err == nil && !bytes.Equal(p.encode(layout.Seq(ref.First)), b) {
				t.Fatal("root page is not canonical")
			}
			return
		}
		n, err := decodePage(ref, b)
		if err != nil {
			return
		}
		out := appendHeader(nil, ref.Kind, ref.Level, ref.First)
		if out = pad(appendTable(out, n.allRows(), n.columns())); !bytes.Equal(out, b) {
			t.Fatal("page is not canonical")
		}
		n.search(ref.First)
	})
}

func FuzzRoot(f *testing.F) {
	f.Add([]byte(sampleRoot()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if ref, err := decodeRoot(b); err == nil {
			if again := encodeRoot(layout.Seq(ref.First), ref); !bytes.Equal(again, b) {
				t.Fatal("root is not canonical")
			}
		}
	})
}

func le64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}
