package logstore

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// Version is the version of the files that this program writes.
const Version = 1

const (
	magic      = "strklog" // and the digit of the version
	fileHeader = 16
	// recordFixed is a record's length without extensions and data, bodyFixed the part
	// of it that length counts.
	recordFixed = 41
	bodyFixed   = recordFixed - 12
	align       = 8
	// maxRecord bounds a record, in bytes: raft's batches are far smaller.
	maxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSize is how much room an entry takes in a file.
func recordSize(e *raft.Log) int64 {
	return roundUp(recordFixed + int64(len(e.Extensions)) + int64(len(e.Data)))
}

func roundUp(n int64) int64 { return (n + align - 1) &^ (align - 1) }

// appendRecord encodes an entry of the batch that begins at an offset.
func appendRecord(b []byte, e *raft.Log, batch int64) []byte {
	at := len(b)
	length := bodyFixed + len(e.Extensions) + len(e.Data)
	b = binary.LittleEndian.AppendUint32(b, uint32(length))
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(batch))
	b = binary.LittleEndian.AppendUint64(b, e.Index)
	b = binary.LittleEndian.AppendUint64(b, e.Term)
	b = append(b, byte(e.Type))
	appended := int64(0)
	if !e.AppendedAt.IsZero() {
		appended = e.AppendedAt.UnixNano()
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(appended))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Extensions)))
	b = append(append(b, e.Extensions...), e.Data...)
	binary.LittleEndian.PutUint32(b[at+4:], recordCRC(b[at:]))
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

func recordCRC(r []byte) uint32 {
	return crc32.Update(crc32.Checksum(r[:4], castagnoli), castagnoli, r[8:])
}

// decodeRecord reads the record that b begins with. size is what it takes in the file;
// the entry's bytes are b's. Error: Corrupt; size 0 and no error where no record is.
func decodeRecord(b []byte) (e raft.Log, batch, size int64, err error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) == 0 {
		return e, 0, 0, nil
	}
	length := int64(binary.LittleEndian.Uint32(b))
	if length < bodyFixed || length > maxRecord || length+12 > int64(len(b)) {
		return e, 0, 0, errs.New(errs.Corrupt, "", "a record of %d bytes", length)
	}
	r := b[:12+length]
	if binary.LittleEndian.Uint32(r[4:]) != recordCRC(r) {
		return e, 0, 0, errs.New(errs.Corrupt, "", "a record's checksum is wrong")
	}
	n := int64(binary.LittleEndian.Uint32(r[37:]))
	if n > length-bodyFixed {
		return e, 0, 0, errs.New(errs.Corrupt, "", "extensions of %d bytes in a record of %d", n, length)
	}
	e = raft.Log{Index: binary.LittleEndian.Uint64(r[12:]), Term: binary.LittleEndian.Uint64(r[20:]), Type: raft.LogType(r[28])}
	if at := int64(binary.LittleEndian.Uint64(r[29:])); at != 0 {
		e.AppendedAt = time.Unix(0, at).UTC()
	}
	if n > 0 {
		e.Extensions = r[recordFixed : recordFixed+n]
	}
	if data := r[recordFixed+n:]; len(data) > 0 {
		e.Data = data
	}
	return e, int64(binary.LittleEndian.Uint32(r[8:])), roundUp(12 + length), nil
}

// proves tells whether a file has a whole record of a batch that began behind an
// offset: then what stood at the offset was durable.
func proves(file []byte, end int64) bool {
	end = max(end, fileHeader) // the header goes with the first batch
	for at := roundUp(end + 1); at+recordFixed <= int64(len(file)); at += align {
		batch := int64(binary.LittleEndian.Uint32(file[at+8:]))
		if batch <= end || batch > at {
			continue
		}
		if e, _, size, err := decodeRecord(file[at:]); err == nil && size > 0 && e.Index > 0 {
			return true
		}
	}
	return false
}

func encodeHeader(first uint64) []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(magic), '0'+Version), first)
}

// checkHeader tells whether a file begins as one of this version whose first entry has
// this index. Errors: Version for one that a program of another version wrote, Corrupt.
func checkHeader(b []byte, first uint64) error {
	switch {
	case len(b) < fileHeader || string(b[:len(magic)]) != magic || binary.LittleEndian.Uint64(b[8:]) != first:
		return errs.New(errs.Corrupt, "", "its header is wrong")
	case b[len(magic)] != '0'+Version:
		return errs.New(errs.Version, "", "version %q, this program reads %d", b[len(magic)], Version).
			WithHint("start the version of the program that wrote it")
	}
	return nil
}
