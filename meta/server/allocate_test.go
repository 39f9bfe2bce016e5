package server

import (
	"testing"

	"strake/internal/errs"
)

// TestAFullCellSaysWhatToDo: what chunk servers refuse for want of space comes back
// as that, with a hint; where one of them could not be asked, it is not known.
func TestAFullCellSaysWhatToDo(t *testing.T) {
	full := errs.New(errs.NoSpace, "create shard 7/1", "the shard wants 4096 bytes, 0 are free for new shards")
	away := errs.New(errs.Unavailable, "chunk server 2", "connection refused")
	err := (&allocation{failed: map[deviceID]error{1: full, 2: full}}).refusal()
	if errs.KindOf(err) != errs.NoSpace || errs.HintOf(err) == "" {
		t.Errorf("got %v, %v, hint %q", errs.KindOf(err), err, errs.HintOf(err))
	}
	if err = (&allocation{failed: map[deviceID]error{1: full, 2: away}}).refusal(); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v, %v", errs.KindOf(err), err)
	}
}
