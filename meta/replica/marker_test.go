package replica

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta/replica/smallfile"
)

// TestSmallFilesOfANewerProgramAreRefused: what it says beyond what is known here
// must not get lost when the file is written again.
func TestSmallFilesOfANewerProgramAreRefused(t *testing.T) {
	for _, body := range []string{`{"Member":"1","Votes":3}`, `{"Member":"1"}{}`, `[]`} {
		fs := vfs.NewMem(vfs.MemOptions{})
		if err := smallfile.Write(fs, markerFile, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if m, err := readMarker(fs); errs.KindOf(err) != errs.Version {
			t.Errorf("a marker %s: got %+v, %v", body, m, err)
		}
	}
	fs := vfs.NewMem(vfs.MemOptions{})
	if err := smallfile.Write(fs, "meta", []byte(`{"Files":[1],"Stable":{},"Learners":2}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := openStable(fs, "meta"); errs.KindOf(err) != errs.Version {
		t.Errorf("a list of files: %v", err)
	}
}
