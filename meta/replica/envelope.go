package replica

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// An entry goes to the log with an envelope before its extensions:
//
//	0        4        12       20     21
//	| crc32c | term   | index  | type | the entry's own extensions ... |
//
// The CRC covers all of it but itself, then the entry's data. The log store checks
// its files; the envelope checks, end to end, what raft gets of it: an entry that is
// read in another's place is found too. The data is not copied.
const envelopeLength = 21

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns a copy of an entry in its envelope.
func seal(entry *raft.Log) *raft.Log {
	sealed := *entry
	e := make([]byte, envelopeLength, envelopeLength+len(entry.Extensions))
	binary.LittleEndian.PutUint64(e[4:], entry.Term)
	binary.LittleEndian.PutUint64(e[12:], entry.Index)
	e[20] = byte(entry.Type)
	e = append(e, entry.Extensions...)
	binary.LittleEndian.PutUint32(e, envelopeCRC(e, entry.Data))
	sealed.Extensions = e
	return &sealed
}

// unseal checks an entry that was read at an index and takes its envelope off.
func unseal(entry *raft.Log, index uint64) error {
	e := entry.Extensions
	switch {
	case len(e) < envelopeLength:
		return corruptEntry(index, "it has no envelope")
	case binary.LittleEndian.Uint32(e) != envelopeCRC(e, entry.Data):
		return corruptEntry(index, "its checksum is wrong")
	case binary.LittleEndian.Uint64(e[12:]) != index || entry.Index != index:
		return corruptEntry(index, "another entry stands in its place")
	case binary.LittleEndian.Uint64(e[4:]) != entry.Term || e[20] != byte(entry.Type):
		return corruptEntry(index, "its term or type is wrong")
	}
	entry.Extensions = e[envelopeLength:]
	if len(entry.Extensions) == 0 {
		entry.Extensions = nil
	}
	return nil
}

func envelopeCRC(envelope, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(envelope[4:], castagnoli), castagnoli, data)
}

func corruptEntry(index uint64, what string) error {
	return errs.New(errs.Corrupt, "", "log entry %d: %s", index, what)
}

// A stable value is kept with a CRC of its key and itself before it.
func sealValue(key, value []byte) []byte {
	b := make([]byte, 4, 4+len(value))
	b = append(b, value...)
	binary.LittleEndian.PutUint32(b, crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value))
	return b
}

func unsealValue(key, b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b[4:]) {
		return nil, errs.New(errs.Corrupt, "", "stable value %q: its checksum is wrong", key)
	}
	return b[4:], nil
}
