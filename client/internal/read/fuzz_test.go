package read

import (
	"encoding/binary"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

// FuzzCheck hands replies of a chunk server to a degraded request: what is not
// refused under the stripe's own headers is the stripe's own bytes.
func FuzzCheck(f *testing.F) {
	m := newMemory(rand.New(rand.NewSource(1)))
	m.append(f, 1, layout.Geometry{K: 2, M: 2}, 2, 1)
	var o Op
	o.Start(1, piecesOf(m.blocks, 0))
	peer := o.Replied(0, Verdict{Err: errs.New(errs.Unavailable, "", "")})[1].Request
	meta, payload, err := m.answer(peer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta, payload)
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<31), payload)
	f.Add(append(meta, meta[4:]...), payload[:len(payload)-1])
	f.Fuzz(func(t *testing.T, gotMeta, gotPayload []byte) {
		v := peer.Check(gotMeta, [][]byte{gotPayload}, nil)
		if v.Err == nil && len(v.Bad) == 0 && string(gotMeta) == string(meta) && string(gotPayload) != string(payload) {
			t.Fatal("other bytes passed for the stripe's")
		}
		direct := Request{}
		direct.Check(gotMeta, [][]byte{gotPayload}, nil)
	})
}
