package inprocess

import (
	"testing"

	"strake/client"
	"strake/internal/layout"
)

// TestAReadIsServedInItsOwnClassAndItsVolumesTenant: the schedulers of the chunk
// servers, which share by tenant and class, see both.
func TestAReadIsServedInItsOwnClassAndItsVolumesTenant(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell := c.Dial()
	create(t, cell, "acme/v", mib, 1, 1)
	v := open(t, cell, "acme/v", writing)
	data := pattern(1, 64<<10)
	write(t, v, data, 0)
	flush(t, v)
	reads := func(class layout.Class) (n uint64) {
		list, err := cell.Figures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			for _, f := range s.Classes {
				if f.Class == uint32(class) && f.Tenant == uint64(layout.TenantOf("acme")) {
					n += f.Reads
				}
			}
		}
		return n
	}
	before := reads(layout.ClassInference)
	got := make([]byte, len(data))
	if n, err := v.ReadIn(t.Context(), "inference", got, 0); n != len(got) || err != nil || firstDifference(got, data) >= 0 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if n := reads(layout.ClassInference) - before; n == 0 {
		t.Error("no chunk server served the read in the class inference, of the volume's tenant")
	}
	before, other := reads(layout.ClassInference), reads(layout.ClassTraining)
	holds(t, v, data, 0)
	if reads(layout.ClassInference) != before || reads(layout.ClassTraining) == other {
		t.Error("the class of one read stays with the handle")
	}
	for _, class := range []string{"", "none-such", "Inference"} {
		_, err := v.ReadIn(t.Context(), class, got, 0)
		fails(t, "a read in class "+class, err, client.ErrInvalidArgument)
	}
	closed(t, v)
}
