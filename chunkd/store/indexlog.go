package store

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/proto/stripe"
)

// checkIndexLogs looks for rot in Pebble's write-ahead logs before Pebble reads
// them. Pebble takes a damaged chunk for the torn end of a log unless a chunk in
// a later 32 KiB block says that its place was synced; so rot in the last block
// would silently drop synced batches: stripes, and fences. This check looks at
// every byte behind the damage. If the very last chunk rots, nothing tells.
//
// A log is a row of chunks that do not cross blocks of 32 KiB. A chunk, of the
// encodings 9 to 12 (Pebble's record package, frozen by its format version):
//
//	 0  4  CRC32C of all from byte 6 on, rotated and offset
//	 4  2  length of the payload
//	 6  1  encoding
//	 7  4  number of the log
//	11  8  how much of the log was synced when this was written
//	19  .. payload
func checkIndexLogs(fsys vfs.FS) error {
	names, err := fsys.List(indexDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		base, isLog := strings.CutSuffix(name, ".log")
		number, err := strconv.ParseUint(base, 10, 64)
		if !isLog || err != nil {
			continue
		}
		b, err := readAll(fsys, indexDir+"/"+name)
		if err != nil {
			return err
		}
		if at, damaged := rottenChunk(b, uint32(number)); damaged {
			return errs.New(errs.Corrupt, "check index", "%s is damaged at %d, below what was synced", name, at).
				WithHint("wipe the device and let its shards be rebuilt")
		}
	}
	return nil
}

func readAll(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

const (
	chunkBlock      = 32 << 10
	chunkHeader     = 19
	chunkTrailer    = 11 // header of the chunk that ends a closed log
	firstSyncChunk  = 9
	lastSyncChunk   = 12
	chunkCRCRotate  = 15
	chunkCRCOffset  = 0xa282ead8
	chunkCRCStartAt = 6
)

// rottenChunk finds the first invalid chunk, and a valid one after it which says
// that the place of the first was synced.
func rottenChunk(b []byte, log uint32) (at int, damaged bool) {
	for at < len(b) {
		left := min(chunkBlock-at%chunkBlock, len(b)-at)
		n, _, ok := chunkAt(b[at:at+left], log)
		switch {
		case ok:
			at += n
		case left < chunkHeader || isTrailer(b[at:at+left], log):
			at += left // padding, or the end of a closed log
		default:
			for q := at + 1; q+chunkHeader <= len(b); q++ {
				block := min(chunkBlock-q%chunkBlock, len(b)-q)
				if _, synced, ok := chunkAt(b[q:q+block], log); ok && synced > uint64(at) {
					return at, true
				}
			}
			return at, false
		}
	}
	return at, false
}

// chunkAt reads the chunk at the start of b, which ends with the block.
func chunkAt(b []byte, log uint32) (n int, synced uint64, ok bool) {
	le := binary.LittleEndian
	if len(b) < chunkHeader || b[6] < firstSyncChunk || b[6] > lastSyncChunk || le.Uint32(b[7:]) != log {
		return 0, 0, false
	}
	n = chunkHeader + int(le.Uint16(b[4:]))
	if n > len(b) {
		return 0, 0, false
	}
	c := crc32.Checksum(b[chunkCRCStartAt:n], stripe.Castagnoli)
	c = c>>chunkCRCRotate | c<<(32-chunkCRCRotate)
	return n, le.Uint64(b[11:]), c+chunkCRCOffset == le.Uint32(b)
}

// isTrailer: a closed log ends with a chunk that bears the next number.
func isTrailer(b []byte, log uint32) bool {
	return len(b) >= chunkTrailer && binary.LittleEndian.Uint32(b[7:]) == log+1
}
