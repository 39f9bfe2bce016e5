package extent

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// A page, version 1, little-endian, frozen:
//
//	 0  4  magic "SKXM"
//	 4  1  version (1)
//	 5  1  kind: 1 root, 2 extents, 3 live blocks
//	 6  1  level (0: leaf; 0 in a root page)
//	 7  1  zero
//	 8  8  first key of the page's part of the key space; a root page: the seq it covers
//	16  ..  one table (table.go); a root page has three, each behind its level (1 byte):
//	        top node of the extents, top node of the live blocks, map segments
//	 ..  ..  zeros up to a multiple of 4096
//
// Columns, in order. A leaf of extents: block, count, segment, offset, unit,
// data mask, payload index. A leaf of live blocks, and the map segments:
// segment, live blocks. An inner page: first key, page blocks, segment, offset,
// unit, data mask, payload index, CRC32C of the child. Offsets and units count
// blocks of 4096 bytes.
//
// The page's CRC32C stands in its parent (for the root page: in the root
// record), so that a stale or misdirected page is refused, not only a rotten
// one; kind, level and first key must be what the parent says. A page names no
// volume, since a clone shares its parent's pages.
const (
	pageMagic = 0x4d584b53 // "SKXM"
	// PageVersion is the version of the pages that this program writes.
	PageVersion = 1
	pageHeader  = 16
)

// Most bytes of a page. Leaves are one block: a random 4 KiB write dirties no
// more map than data. Inner pages are few, so they may be wide and the tree low.
const (
	leafLimit  = layout.BlockSize
	innerLimit = 4 * layout.BlockSize
	// MaxMapSegments bounds the table in the root page.
	MaxMapSegments = 2048
)

func appendHeader(b []byte, kind Kind, level uint8, first uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, pageMagic)
	b = append(b, PageVersion, byte(kind), level, 0)
	return binary.LittleEndian.AppendUint64(b, first)
}

// pad fills the page up to whole blocks.
func pad(b []byte) []byte {
	if n := len(b) % layout.BlockSize; n != 0 {
		b = append(b, make([]byte, layout.BlockSize-n)...)
	}
	return b
}

// isPadding tells whether b is what pad appends.
func isPadding(b []byte) bool { return len(b) < layout.BlockSize && allZero(b) }

// sealPage gives the ref of a finished page, less its spot.
func sealPage(b []byte, kind Kind, level uint8, first uint64) PageRef {
	return PageRef{Blocks: uint32(len(b) / layout.BlockSize), CRC: crc32.Checksum(b, stripe.Castagnoli),
		Kind: kind, Level: level, First: first}
}

// encodePage makes the page of rows.
func encodePage(kind Kind, level uint8, first uint64, rows []row) []byte {
	b := make([]byte, 0, leafLimit)
	b = appendHeader(b, kind, level, first)
	return pad(appendTable(b, rows, columns(kind, level)))
}

// openPage verifies a page against its ref and gives what follows the header.
func openPage(ref PageRef, b []byte) ([]byte, error) {
	switch {
	case ref.Blocks == 0 || ref.Blocks > MaxPageBlocks || len(b) != ref.Bytes():
		return nil, bad("%d bytes, want %d blocks", len(b), ref.Blocks)
	case crc32.Checksum(b, stripe.Castagnoli) != ref.CRC:
		return nil, bad("checksum differs")
	case binary.LittleEndian.Uint32(b) != pageMagic || b[7] != 0:
		return nil, bad("no page")
	case b[4] != PageVersion:
		return nil, unknownVersion("read map page", b[4])
	case Kind(b[5]) != ref.Kind || b[6] != ref.Level || binary.LittleEndian.Uint64(b[8:]) != ref.First:
		return nil, bad("page of kind %d, level %d, first %d, want %d, %d, %d",
			b[5], b[6], binary.LittleEndian.Uint64(b[8:]), ref.Kind, ref.Level, ref.First)
	}
	return b[pageHeader:], nil
}

// decodePage gives the node in a page other than a root page. The node keeps a
// copy of its rows only, so a page that is half full takes half the memory.
func decodePage(ref PageRef, b []byte) (node, error) {
	n := node{kind: ref.Kind, level: ref.Level}
	b, err := openPage(ref, b)
	if err != nil {
		return n, err
	}
	if n.kind != KindExtent && n.kind != KindLive || n.level > maxLevel {
		return n, bad("kind %d, level %d", n.kind, n.level)
	}
	var rest []byte
	if n.table, rest, err = parseTable(b, n.columns()); err != nil {
		return n, err
	}
	if !isPadding(rest) {
		return n, bad("bytes after the table")
	}
	if err := n.check(ref.First); err != nil {
		return n, err
	}
	n.bits = append([]byte(nil), n.bits...)
	return n, nil
}
