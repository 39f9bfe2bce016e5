package format

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// The superblock tells whose a device is. Version 1, little-endian, frozen:
//
//	  0  8  magic "SKDEV1\0\0"
//	  8  4  version (1)
//	 12  4  zero
//	 16  8  cell
//	 24 16  server UUID
//	 40 16  device UUID
//	 56  8  device id (0: not registered yet)
//	 64  8  incarnation (0: never opened)
//	 72  8  write: counts the writes of this superblock
//	 80 16  log key: secret of this device, seals the heads of log records
//	 96 412 zero
//	508  4  CRC32C of all bytes before
//
// It is kept in two slots, at 0 and SlotDistance of one file, written and
// synced one after the other. A slot is one disk sector, so a power cut leaves
// at least one whole; the valid one with the higher write count holds.
const (
	// SuperblockLen is the length of one slot in bytes.
	SuperblockLen = 512
	// SlotDistance lies between the two slots, in bytes: no two share a page.
	SlotDistance = 4096
	// SuperblockFileLen is the length of the file of both slots.
	SuperblockFileLen = SlotDistance + SuperblockLen

	superblockVersion = 1
	superblockUsed    = 96
)

var superblockMagic = [8]byte{'S', 'K', 'D', 'E', 'V', '1'}

// Superblock is the identity of a device.
type Superblock struct {
	Cell        layout.CellID
	Server      layout.UUID
	UUID        layout.UUID // of the device
	Device      layout.DeviceID
	Incarnation layout.Incarnation
	Write       uint64
	LogKey      [16]byte
}

// AppendTo appends one encoded slot to b.
func (s *Superblock) AppendTo(b []byte) []byte {
	le, at := binary.LittleEndian, len(b)
	b = append(b, superblockMagic[:]...)
	b = le.AppendUint64(b, superblockVersion)
	b = le.AppendUint64(b, uint64(s.Cell))
	b = append(b, s.Server[:]...)
	b = append(b, s.UUID[:]...)
	for _, v := range [...]uint64{uint64(s.Device), uint64(s.Incarnation), s.Write} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, s.LogKey[:]...)
	b = append(b, make([]byte, SuperblockLen-4-superblockUsed)...)
	return le.AppendUint32(b, crc32.Checksum(b[at:], stripe.Castagnoli))
}

// DecodeSuperblock reads one slot. Errors are of kind Corrupt or Version.
func DecodeSuperblock(b []byte) (Superblock, error) {
	const op = "decode superblock"
	le := binary.LittleEndian
	switch {
	case len(b) != SuperblockLen:
		return Superblock{}, errs.New(errs.Corrupt, op, "%d bytes, want %d", len(b), SuperblockLen)
	case [8]byte(b) != superblockMagic:
		return Superblock{}, errs.New(errs.Corrupt, op, "no superblock")
	case crc32.Checksum(b[:SuperblockLen-4], stripe.Castagnoli) != le.Uint32(b[SuperblockLen-4:]):
		return Superblock{}, errs.New(errs.Corrupt, op, "checksum differs")
	case le.Uint32(b[8:]) != superblockVersion:
		return Superblock{}, errs.New(errs.Version, op, "version %d, this program reads %d", le.Uint32(b[8:]), superblockVersion)
	case !zero(b[12:16]) || !zero(b[superblockUsed:SuperblockLen-4]):
		return Superblock{}, errs.New(errs.Corrupt, op, "reserved bytes are set")
	}
	return Superblock{
		Cell: layout.CellID(le.Uint64(b[16:])), Server: layout.UUID(b[24:40]), UUID: layout.UUID(b[40:56]),
		Device: layout.DeviceID(le.Uint64(b[56:])), Incarnation: layout.Incarnation(le.Uint64(b[64:])),
		Write: le.Uint64(b[72:]), LogKey: [16]byte(b[80:96]),
	}, nil
}

// PickSuperblock reads both slots of a superblock file and gives the one that
// holds. Error: Version when either was written by a program of another version,
// for the other slot is a life that is over; Corrupt.
func PickSuperblock(file []byte) (Superblock, error) {
	if len(file) < SuperblockFileLen {
		return Superblock{}, errs.New(errs.Corrupt, "read superblock", "%d bytes, want %d", len(file), SuperblockFileLen)
	}
	a, errA := DecodeSuperblock(file[:SuperblockLen])
	b, errB := DecodeSuperblock(file[SlotDistance:SuperblockFileLen])
	switch {
	case errs.KindOf(errA) == errs.Version:
		return Superblock{}, errs.Wrap(errA, "read superblock")
	case errs.KindOf(errB) == errs.Version:
		return Superblock{}, errs.Wrap(errB, "read superblock")
	case errA != nil && errB != nil:
		return Superblock{}, errs.Wrap(errA, "read superblock")
	case errA != nil || errB == nil && b.Write > a.Write:
		return b, nil
	}
	return a, nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
