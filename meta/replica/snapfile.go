package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// A snapshot file:
//
//	0        8          12              16
//	| magic  | meta len | crc32c of     | meta (JSON) | body ... | crc32c of |
//	|        |          | len and meta  |             |          | the body  |
//
// The body ends 4 bytes before the end of the file. The file is written under a
// temporary name, synced, and renamed; one that has its final name is whole.
// The description is raft's, whose version it carries; a field that is not known is
// one of another version. Another layout gets another magic, that begins alike.
const (
	snapMetaVersion = 1

	snapMagic   = "strksnap"
	snapFamily  = "strk" // what the magic of every version begins with
	snapFixed   = 16
	snapTrailer = 4
	// maxSnapMeta bounds the description, in bytes.
	maxSnapMeta = 1 << 20
)

func encodeSnapHeader(meta raft.SnapshotMeta) ([]byte, error) {
	body, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	h := make([]byte, snapFixed, snapFixed+len(body))
	copy(h, snapMagic)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(body)))
	crc := crc32.Update(crc32.Checksum(h[8:12], castagnoli), castagnoli, body)
	binary.LittleEndian.PutUint32(h[12:], crc)
	return append(h, body...), nil
}

// snapFile is a snapshot opened for reading.
type snapFile struct {
	file       vfs.File
	body       int64 // offset
	bodyLength int64
}

func decodeSnapHeader(file vfs.File) (*snapFile, []byte, error) {
	size, err := file.Size()
	if err != nil {
		return nil, nil, err
	}
	var h [snapFixed]byte
	if _, err := file.ReadAt(h[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	n := binary.LittleEndian.Uint32(h[8:])
	if string(h[:8]) != snapMagic && string(h[:len(snapFamily)]) == snapFamily {
		return nil, nil, errs.New(errs.Version, "", "it is of format %q, this program reads %q", h[:8], snapMagic)
	}
	if string(h[:8]) != snapMagic || n > maxSnapMeta || size < int64(snapFixed+n+snapTrailer) {
		return nil, nil, errs.New(errs.Corrupt, "", "its header is wrong")
	}
	meta := make([]byte, n)
	if _, err := file.ReadAt(meta, snapFixed); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if binary.LittleEndian.Uint32(h[12:]) != crc32.Update(crc32.Checksum(h[8:12], castagnoli), castagnoli, meta) {
		return nil, nil, errs.New(errs.Corrupt, "", "its header's checksum is wrong")
	}
	start := int64(snapFixed) + int64(n)
	return &snapFile{file: file, body: start, bodyLength: size - start - snapTrailer}, meta, nil
}

// readSnapMeta reads the description in a snapshot's file. Error: Version.
func readSnapMeta(b []byte, meta *raft.SnapshotMeta) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	switch err := d.Decode(meta); {
	case err != nil: // the checksum was right
		return errs.As(err, errs.Version, "its description")
	case meta.Version != snapMetaVersion:
		return errs.New(errs.Version, "", "its description is of version %d, this program reads %d", meta.Version, snapMetaVersion)
	}
	return nil
}

// check reads the body and compares its CRC.
func (f *snapFile) check() error {
	sum := crc32.New(castagnoli)
	body := io.NewSectionReader(f.file, f.body, f.bodyLength)
	if n, err := io.CopyBuffer(sum, body, make([]byte, snapBuffer)); err != nil {
		return err
	} else if n != f.bodyLength {
		return errs.New(errs.Corrupt, "", "it is too short")
	}
	var want [snapTrailer]byte
	if _, err := f.file.ReadAt(want[:], f.body+f.bodyLength); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if binary.LittleEndian.Uint32(want[:]) != sum.Sum32() {
		return errs.New(errs.Corrupt, "", "its checksum is wrong")
	}
	return nil
}

// snapBody reads a snapshot's body.
type snapBody struct {
	io.Reader
	file vfs.File
}

// Close closes the file.
func (b *snapBody) Close() error { return b.file.Close() }

// sink takes a snapshot's body. Used by one goroutine.
type sink struct {
	store  *snapshots
	id     string
	file   vfs.File
	out    *writerAt
	buffer *bufio.Writer
	crc    uint32
	failed error // the first write that failed: the snapshot must not count
	ended  bool
}

var _ raft.SnapshotSink = (*sink)(nil)

// ID implements raft.SnapshotSink.
func (k *sink) ID() string { return k.id }

// Write implements io.Writer.
func (k *sink) Write(p []byte) (int, error) {
	k.crc = crc32.Update(k.crc, castagnoli, p)
	n, err := k.buffer.Write(p)
	if err != nil && k.failed == nil {
		k.failed = err
	}
	return n, err
}

// Close makes the snapshot durable and lets it count.
func (k *sink) Close() error {
	if k.ended {
		return k.failed
	}
	k.ended = true
	k.failed = k.seal()
	if err := k.file.Close(); k.failed == nil {
		k.failed = err
	}
	if k.failed == nil {
		k.failed = k.store.finish(k.id)
	}
	return errs.Wrap(k.failed, "write snapshot %s", k.id)
}

func (k *sink) seal() error {
	if k.failed != nil {
		return k.failed
	}
	k.buffer.Write(binary.LittleEndian.AppendUint32(nil, k.crc))
	if err := k.buffer.Flush(); err != nil {
		return err
	}
	return k.file.Sync()
}

// Cancel drops the snapshot.
func (k *sink) Cancel() error {
	if k.ended {
		return nil
	}
	k.ended = true
	return errors.Join(k.file.Close(), k.store.fs.Remove(snapDir+"/"+k.id+snapTemp))
}

// writerAt appends to a file.
type writerAt struct {
	f   vfs.File
	off int64
}

func (w *writerAt) Write(p []byte) (int, error) {
	n, err := w.f.WriteAt(p, w.off)
	w.off += int64(n)
	return n, err
}
