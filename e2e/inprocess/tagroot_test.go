package inprocess

import (
	"testing"

	"strake/client"
)

// TestATagOfAVolumeThatIsWrittenHasARootOfItsOwn makes a snapshot and a tag of a volume
// after many small writes: those who open the tag, thousands maybe, replay none of them.
func TestATagOfAVolumeThatIsWrittenHasARootOfItsOwn(t *testing.T) {
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{CleanEvery: -1, MapHeaders: 1 << 40, CloseHeaders: 8}}})
	_, v := volume(t, c, 16*mib, 4, 2)
	model := pattern(1, 64*block)
	for at := int64(0); at < 64*block; at += block {
		write(t, v, model[at:][:block], at)
	}
	other := c.Dial()
	freeze(t, other, "v@s")
	if n := v.Stats().MapRoots; n != 0 {
		t.Errorf("%d map roots for a snapshot", n)
	}
	if _, err := other.CreateTags(t.Context(), "v@t"); err != nil {
		t.Fatal(err)
	}
	if n := v.Stats().MapRoots; n != 1 {
		t.Errorf("%d map roots for a tag", n)
	}
	write(t, v, pattern(2, block), 0)
	if _, err := other.CreateTags(t.Context(), "v@u"); err != nil {
		t.Fatal(err)
	}
	if n := v.Stats().MapRoots; n != 1 {
		t.Errorf("%d map roots, and there was one write since the last", n)
	}
	frozenAs(t, other, "v@s", model, 0)
	frozenAs(t, other, "v@t", model, 0)
	closed(t, v)

}
