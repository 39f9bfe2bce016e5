package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"io"

	"strake/internal/errs"
)

// Version is the version of the backups that this program writes.
const Version = 1

const (
	magic = "strkbkup"
	fixed = 16
	// maxAbout bounds the description, in bytes.
	maxAbout = 64 << 10
	buffer   = 256 << 10
)

// About says what a backup is of.
type About struct {
	Cell    uint64   `json:"cell"`
	Applied uint64   `json:"applied"` // the log's last entry in it
	Members []string `json:"members"` // the metadata servers, by address
	AtUnix  uint64   `json:"at_unix"` // for display only
}

// Writer writes a backup: the snapshot through Write, then Close.
type Writer struct {
	to  *bufio.Writer
	sum hash.Hash
}

// NewWriter begins a backup.
func NewWriter(to io.Writer, about About) (*Writer, error) {
	text, err := json.Marshal(about)
	if err != nil || len(text) > maxAbout {
		return nil, errs.New(errs.TooLarge, "write backup", "a description of %d bytes", len(text))
	}
	w := &Writer{to: bufio.NewWriterSize(to, buffer), sum: sha256.New()}
	head := append(make([]byte, 0, fixed+len(text)), magic...)
	head = binary.LittleEndian.AppendUint32(head, Version)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(text)))
	_, err = w.Write(append(head, text...))
	return w, err
}

// Write adds to the snapshot.
func (w *Writer) Write(p []byte) (int, error) {
	w.sum.Write(p)
	return w.to.Write(p)
}

// Close ends the backup with its sum.
func (w *Writer) Close() error {
	if _, err := w.to.Write(w.sum.Sum(nil)); err != nil {
		return err
	}
	return w.to.Flush()
}

// Open checks a backup of size bytes and gives its description and snapshot.
// Errors: Corrupt, Version.
func Open(from io.ReaderAt, size int64) (About, io.Reader, error) {
	about, start, err := head(from, size)
	if err != nil {
		return about, nil, errs.Wrap(err, "read backup")
	}
	sum, end := sha256.New(), size-sha256.Size
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(from, 0, end), make([]byte, buffer)); err != nil {
		return about, nil, errs.Wrap(err, "read backup")
	}
	var want [sha256.Size]byte
	if _, err := from.ReadAt(want[:], end); err != nil && err != io.EOF {
		return about, nil, errs.Wrap(err, "read backup")
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		return about, nil, errs.New(errs.Corrupt, "read backup", "its sum is wrong: it was cut short or has rotted").WithHint("use another backup")
	}
	return about, bufio.NewReaderSize(io.NewSectionReader(from, start, end-start), buffer), nil
}

// head reads the fixed part and the description; start is where the snapshot begins.
func head(from io.ReaderAt, size int64) (about About, start int64, err error) {
	var h [fixed]byte
	if size < fixed+sha256.Size {
		return about, 0, errs.New(errs.Corrupt, "", "%d bytes are no backup", size)
	}
	if _, err := from.ReadAt(h[:], 0); err != nil {
		return about, 0, err
	}
	n := int64(binary.LittleEndian.Uint32(h[12:]))
	switch v := binary.LittleEndian.Uint32(h[8:]); {
	case string(h[:8]) != magic:
		return about, 0, errs.New(errs.Corrupt, "", "it is no backup of a cell's metadata")
	case v != Version:
		return about, 0, errs.New(errs.Version, "", "version %d, this program reads %d", v, Version).WithHint("use a newer program")
	case n > maxAbout || n > size-fixed-sha256.Size:
		return about, 0, errs.New(errs.Corrupt, "", "a description of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := from.ReadAt(text, fixed); err != nil {
		return about, 0, err
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return about, 0, errs.As(err, errs.Corrupt, "its description")
	}
	return about, fixed + n, nil
}
