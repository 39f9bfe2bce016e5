package smallfile

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

// The format, see the package comment.
const (
	magic  = "strkmeta"
	header = 16
	// maxBody bounds a small file's body, in bytes.
	maxBody = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(body []byte) []byte {
	b := make([]byte, header, header+len(body))
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(body)))
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

func decode(b []byte) ([]byte, error) {
	if len(b) < header || string(b[:8]) != magic {
		return nil, errs.New(errs.Corrupt, "", "not a file of this service")
	}
	if int64(binary.LittleEndian.Uint32(b[12:])) != int64(len(b)-header) {
		return nil, errs.New(errs.Corrupt, "", "the length is wrong")
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return nil, errs.New(errs.Corrupt, "", "the checksum is wrong")
	}
	return b[header:], nil
}

// Read reads a small file; a missing one gives nil. Error: Corrupt.
func Read(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.OpenRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.Wrap(err, "read %s", name)
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil && size > maxBody {
		err = errs.New(errs.Corrupt, "", "the file has %d bytes, at most %d are possible", size, maxBody)
	}
	if err != nil {
		return nil, errs.Wrap(err, "read %s", name)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errs.Wrap(err, "read %s", name)
	}
	body, err := decode(b)
	return body, errs.Wrap(err, "read %s", name)
}

// Write replaces a small file, durably.
func Write(fsys vfs.FS, name string, body []byte) error {
	err := replace(fsys, name, encode(body))
	return errs.Wrap(err, "write %s", name)
}

func replace(fsys vfs.FS, name string, b []byte) error {
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
