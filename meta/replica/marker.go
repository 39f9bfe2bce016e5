package replica

import (
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
	if err := json.Unmarshal(body, &m); err != nil {
		return marker{}, errs.As(err, errs.Corrupt, "read the marker")
	}
	return m, nil
}

func writeMarker(fs vfs.FS, m marker) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return smallfile.Write(fs, markerFile, body)
}
