package replica

import (
	"bytes"
	"encoding/json"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta/replica/smallfile"
)

const markerFile = "member"

// marker says whose directory this is. It is written with the first raft state
// and never removed, so that a directory that lost its state is known from one
// that never had any: a member that forgot its votes must not vote again.
type marker struct {
	Member    string // the raft id; empty: never a member
	Cell      uint64 // 0 while the cell has not formed
	Directory uint64 // drawn when the marker is first written
	Life      uint64 // grows at each start, and now and then while the member runs
}

func readMarker(fs vfs.FS) (marker, error) {
	body, err := smallfile.Read(fs, markerFile)
	if err != nil || body == nil {
		return marker{}, err
	}
	var m marker
	if err := decodeSmall(body, &m); err != nil {
		return marker{}, errs.Wrap(err, "read the marker")
	}
	return m, nil
}

// decodeSmall reads the body of a small file, whose checksum is right. A field that
// is not known was written by a newer program, and would be lost with the next change
// of the file. Error: Version.
func decodeSmall(body []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil && d.InputOffset() != int64(len(body)) {
		err = errs.New(errs.Version, "", "%d bytes follow", int64(len(body))-d.InputOffset())
	}
	return errs.As(err, errs.Version, "a program of another version wrote it")
}

func writeMarker(fs vfs.FS, m marker) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return smallfile.Write(fs, markerFile, body)
}
