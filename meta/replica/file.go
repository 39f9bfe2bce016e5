package replica

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// A small file holds one value and is replaced as a whole:
//
//	0        8        12       16
//	| magic  | crc32c | length | body ... |
//
// The CRC covers length and body. The new file is written and synced beside the
// old one and renamed over it, so that a crash leaves one of the two.
const (
	smallMagic  = "strkmeta"
	smallHeader = 16
	// maxSmallFile bounds a small file's body, in bytes.
	maxSmallFile = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeSmall(body []byte) []byte {
	b := make([]byte, smallHeader, smallHeader+len(body))
	copy(b, smallMagic)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(body)))
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

func decodeSmall(b []byte) ([]byte, error) {
	if len(b) < smallHeader || string(b[:8]) != smallMagic {
		return nil, errs.New(errs.Corrupt, "", "not a file of this service")
	}
	if int64(binary.LittleEndian.Uint32(b[12:])) != int64(len(b)-smallHeader) {
		return nil, errs.New(errs.Corrupt, "", "the length is wrong")
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return nil, errs.New(errs.Corrupt, "", "the checksum is wrong")
	}
	return b[smallHeader:], nil
}

// readSmall reads a small file; a missing one gives nil.
func readSmall(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.OpenRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.Wrap(err, "read %s", name)
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil && size > maxSmallFile {
		err = errs.New(errs.Corrupt, "", "the file has %d bytes, at most %d are possible", size, maxSmallFile)
	}
	if err != nil {
		return nil, errs.Wrap(err, "read %s", name)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errs.Wrap(err, "read %s", name)
	}
	body, err := decodeSmall(b)
	return body, errs.Wrap(err, "read %s", name)
}

// writeSmall replaces a small file, durably.
func writeSmall(fsys vfs.FS, name string, body []byte) error {
	err := replaceSmall(fsys, name, encodeSmall(body))
	return errs.Wrap(err, "write %s", name)
}

func replaceSmall(fsys vfs.FS, name string, b []byte) error {
	temp := name + ".new"
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}
