package state

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Restore reads a snapshot as a stream, holding one frame at a time. Errors are
// of kind Corrupt or Version, or the reader's own. Every record is checked by
// itself and against those before it, so that a restored state never refers to
// what is not there.
func Restore(r io.Reader) (*State, error) {
	s := &restorer{t: newTables(), r: r}
	if err := s.start(); err != nil {
		return nil, err
	}
	for s.section != sectionEnd {
		payload, err := s.frame()
		if err != nil {
			return nil, err
		}
		if err := s.take(payload); err != nil {
			return nil, err
		}
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, corrupt("bytes after the end (%v)", err)
	}
	s.putVolumes()
	for _, check := range []func(*tables) error{checkIDs, checkServers, checkVolumes, checkFrozen} {
		if err := check(s.t); err != nil {
			return nil, errs.As(err, errs.Corrupt, "restore snapshot")
		}
	}
	return &State{t: s.t}, nil
}

type restorer struct {
	t       *tables
	r       io.Reader
	version uint32
	section byte
	counts  [sections]uint64
	buf     []byte

	// Volumes whose segments are being read; they are put when all are in.
	volumes     map[layout.VolumeID]*Volume
	lastVolume  layout.VolumeID
	lastSegment layout.SegmentID
}

func corrupt(format string, args ...any) error {
	return errs.New(errs.Corrupt, "restore snapshot", format, args...).
		WithHint("use another server's snapshot")
}

func (s *restorer) start() error {
	s.volumes = make(map[layout.VolumeID]*Volume)
	var b [16]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return errs.As(err, errs.Corrupt, "restore snapshot header")
	}
	le := binary.LittleEndian
	if string(b[:8]) != snapshotMagic || crc32.Checksum(b[:12], stripe.Castagnoli) != le.Uint32(b[12:]) {
		return corrupt("this is no snapshot, or its header is damaged")
	}
	if s.version = le.Uint32(b[8:]); s.version < firstVersion || s.version > Version {
		return errs.New(errs.Version, "restore snapshot", "version %d, this program reads %d to %d", s.version, firstVersion, Version).WithHint(newerProgram)
	}
	s.t.version = max(s.version, FirstCounted)
	return nil
}

// frame reads and verifies one frame and gives its payload, valid until the next.
func (s *restorer) frame() ([]byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return nil, errs.As(err, errs.Corrupt, "restore snapshot frame")
	}
	n := int(binary.LittleEndian.Uint32(head[4:]))
	if head[1]|head[2]|head[3] != 0 || n == 0 || n > maxFrame || s.rank(head[0]) < max(s.rank(s.section), 1) {
		return nil, corrupt("frame of section %d with %d bytes after section %d", head[0], n, s.section)
	}
	if head[0] == sectionCell && s.section == sectionCell || s.section == 0 && head[0] != sectionCell {
		return nil, corrupt("the cell's record does not stand first and alone")
	}
	s.buf = slices.Grow(s.buf[:0], n+4)[:n+4]
	if _, err := io.ReadFull(s.r, s.buf); err != nil {
		return nil, errs.As(err, errs.Corrupt, "restore snapshot frame of section %d", head[0])
	}
	sum := crc32.Update(crc32.Checksum(head[:], stripe.Castagnoli), stripe.Castagnoli, s.buf[:n])
	if sum != binary.LittleEndian.Uint32(s.buf[n:]) {
		return nil, corrupt("a frame of section %d does not match its checksum", head[0])
	}
	s.section = head[0]
	return s.buf[:n], nil
}

// rank is a section's place in the order, -1 for none of this version.
func (s *restorer) rank(section byte) int {
	if s.version < FirstCounted && section > sectionEnd {
		return -1
	}
	return bytes.IndexByte(sectionOrder[:], section)
}

// take reads the records of one frame.
func (s *restorer) take(payload []byte) error {
	for len(payload) > 0 {
		rest, err := s.record(payload)
		if err != nil {
			return err
		}
		payload = rest
		if s.section != sectionEnd {
			s.counts[s.section]++
		} else if len(payload) > 0 {
			return corrupt("more than one end")
		}
	}
	return nil
}

func (s *restorer) record(b []byte) (rest []byte, err error) {
	switch s.section {
	case sectionCell:
		return restoreAs(b, s.putCell)
	case sectionServers:
		return restoreAs(b, s.putServer)
	case sectionDevices:
		return restoreAs(b, s.putDevice)
	case sectionSessions:
		return restoreAs(b, s.putSession)
	case sectionVolumes:
		return restoreAs(b, s.putVolume)
	case sectionFrozen:
		return restoreAs(b, s.putFrozen)
	case sectionSegments:
		return s.putSegment(b)
	case sectionRecent:
		return restoreAs(b, s.putRecent)
	}
	if s.version < FirstCounted {
		return restoreAs(b, s.endOld)
	}
	return restoreAs(b, s.end)
}

// restoreAs reads one CBOR record in the form that is written, and no other.
func restoreAs[R any](b []byte, put func(*R) error) (rest []byte, err error) {
	r := new(R)
	rest, err = decoding().UnmarshalFirst(b, r)
	if err != nil {
		return nil, undecoded(err, "restore record")
	}
	again, err := encoding().Marshal(r)
	if err != nil || !bytes.Equal(again, b[:len(b)-len(rest)]) {
		return nil, corrupt("a record is not in the form that is written")
	}
	return rest, put(r)
}
