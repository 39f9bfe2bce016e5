package state

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// A snapshot is a magic number and frames, little-endian, frozen:
//
//	 0  8  magic "STRKMETA"
//	 8  4  version: what the state holds, at least 2; see Version. Version 1 had no
//	       sections above 8, and is read
//	12  4  CRC32C of the 12 bytes before
//	then frames:
//	 0  1  section      1  3  zero
//	 4  4  length n of the payload, 1 to 1 MiB
//	 8  n  payload
//	 .. 4  CRC32C of all bytes of the frame before
//
// Sections come in the order below. A section may take many frames; a record
// never crosses one.
//
//	1  cell      CBOR: identity, last ids, applied index; one record
//	2  servers   CBOR records by id       3  devices   the same
//	4  sessions  the same                 5  volumes   the same
//	9  snapshots of volumes: CBOR records by id
//	6  segments  by id: u id, u length of the record, the record (see pack)
//	7  recent    CBOR: remembered commands by log index
//	8  end       CBOR: how many records each section had, by its number
//
// Everything else is derived. There is no compression and no time, so the same
// state gives the same bytes.
const (
	snapshotMagic = "STRKMETA"
	frameHeader   = 8
	maxFrame      = 1 << 20
	frameTarget   = 64 << 10 // a frame is written once it has this much

	sectionCell     = 1
	sectionServers  = 2
	sectionDevices  = 3
	sectionSessions = 4
	sectionVolumes  = 5
	sectionSegments = 6
	sectionRecent   = 7
	sectionEnd      = 8
	sectionFrozen   = 9
	sections        = 10 // one more than the highest
)

// sectionOrder is the order in which sections come.
var sectionOrder = [...]byte{0, sectionCell, sectionServers, sectionDevices, sectionSessions, sectionVolumes,
	sectionFrozen, sectionSegments, sectionRecent, sectionEnd}

// cellRecord is section 1.
type cellRecord struct {
	Cell    Cell    `cbor:"1,keyasint"`
	Last    lastIDs `cbor:"2,keyasint"`
	Applied uint64  `cbor:"3,keyasint"`

	// Since version 1 these may be left out, and are while nobody set any.
	Classes      classTable       `cbor:"4,keyasint,omitempty"`
	Reservations reservationTable `cbor:"5,keyasint,omitempty"`
	QoSChanged   uint64           `cbor:"6,keyasint,omitempty"`
}

// Snapshot is the state at one moment, ready to be written.
type Snapshot struct{ view *View }

// WriteTo writes the snapshot as a stream. It may run in another goroutine
// than Apply.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	f := &frameWriter{w: w}
	t := s.view.t
	f.start(t.version)
	f.record(sectionCell, cellRecord{t.cell, t.last, t.applied, t.classes, t.reservations, t.qosChanged})
	t.servers.Scan(func(_ layout.ServerID, r *Server) bool { return f.record(sectionServers, r) })
	t.devices.Scan(func(_ layout.DeviceID, r *Device) bool { return f.record(sectionDevices, r) })
	t.sessions.Scan(func(_ layout.SessionID, r *Session) bool { return f.record(sectionSessions, r) })
	t.volumes.Scan(func(_ layout.VolumeID, r *Volume) bool { return f.record(sectionVolumes, r) })
	t.frozen.Scan(func(_ layout.SnapshotID, r *Frozen) bool { return f.record(sectionFrozen, r) })
	t.segments.Scan(func(id layout.SegmentID, r string) bool { return f.segment(id, r) })
	t.recentOrder.Scan(func(_ uint64, id CommandID) bool {
		r, _ := t.recent.Get(id)
		return f.record(sectionRecent, r)
	})
	f.record(sectionEnd, f.counts)
	f.flush()
	return f.written, f.err
}

// frameWriter gathers records into frames. The first error latches.
type frameWriter struct {
	w       io.Writer
	section byte
	buf     []byte // the frame that is being gathered, header included
	counts  [sections]uint64
	written int64
	err     error
}

func (f *frameWriter) start(version uint32) {
	b := binary.LittleEndian.AppendUint32([]byte(snapshotMagic), version)
	f.write(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, stripe.Castagnoli)))
}

// record adds a CBOR record; false once writing failed.
func (f *frameWriter) record(section byte, r any) bool {
	b, err := encoding().Marshal(r)
	if err != nil && f.err == nil {
		f.err = err
	}
	return f.add(section, b)
}

func (f *frameWriter) segment(id layout.SegmentID, record string) bool {
	var head [2 * binary.MaxVarintLen64]byte
	b := binary.AppendUvarint(head[:0], uint64(id))
	b = binary.AppendUvarint(b, uint64(len(record)))
	return f.add(sectionSegments, b, []byte(record))
}

func (f *frameWriter) add(section byte, parts ...[]byte) bool {
	if section != f.section || len(f.buf) >= frameTarget {
		f.flush()
		f.section = section
		f.buf = append(f.buf[:0], section, 0, 0, 0, 0, 0, 0, 0)
	}
	for _, p := range parts {
		f.buf = append(f.buf, p...)
	}
	if section != sectionEnd {
		f.counts[section]++
	}
	return f.err == nil
}

func (f *frameWriter) flush() {
	if len(f.buf) == 0 {
		return
	}
	binary.LittleEndian.PutUint32(f.buf[4:], uint32(len(f.buf)-frameHeader))
	f.write(binary.LittleEndian.AppendUint32(f.buf, crc32.Checksum(f.buf, stripe.Castagnoli)))
	f.buf = f.buf[:0]
}

func (f *frameWriter) write(b []byte) {
	if f.err != nil {
		return
	}
	n, err := f.w.Write(b)
	f.written += int64(n)
	f.err = err
}
