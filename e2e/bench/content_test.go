package bench

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

// TestWrongBytesAreFound: any change of a block, another block's bytes and an older
// generation are told.
func TestWrongBytesAreFound(t *testing.T) {
	c := newContent()
	p := make([]byte, 4*layout.BlockSize)
	const off, gen = 7 * layout.BlockSize, 3
	c.fill(p, off, gen)
	last := p[3*layout.BlockSize:]
	if err := c.glance(p, off, gen); err != nil {
		t.Fatal(err)
	}
	if err := c.compare(last, 10, gen); err != nil {
		t.Fatal(err)
	}
	wrongs := map[string]error{
		"another block":           c.compare(last, 11, gen),
		"the same body elsewhere": c.compare(last, 10+bodyBlocks, gen),
		"an older generation":     c.glance(p, off, gen+1),
		"a shifted read":          c.glance(p, off+layout.BlockSize, gen),
	}
	last[100] ^= 1
	wrongs["a flipped bit"] = c.compare(last, 10, gen)
	for name, err := range wrongs {
		if errs.KindOf(err) != errs.Corrupt {
			t.Errorf("%s: %v, want it told as corrupt", name, err)
		}
	}
}

func TestStampingIsFillingWhenBodiesFit(t *testing.T) {
	c := newContent()
	filled, stamped := make([]byte, bodyBytes), make([]byte, bodyBytes)
	c.fill(stamped, 0, 1)
	c.stamp(stamped, 5*bodyBytes, 2)
	c.fill(filled, 5*bodyBytes, 2)
	if string(filled) != string(stamped) {
		t.Error("a stamped buffer differs from a filled one")
	}
}
