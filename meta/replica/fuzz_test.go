package replica

import (
	"bytes"
	"testing"

	"github.com/hashicorp/raft"

	"strake/internal/vfs"
)

// flip gives b with one bit changed, nil where there is none.
func flip(b []byte, bit uint) []byte {
	if len(b) == 0 {
		return nil
	}
	c := bytes.Clone(b)
	c[bit/8%uint(len(b))] ^= 1 << (bit % 8)
	return c
}

func FuzzEnvelope(f *testing.F) {
	f.Add(uint64(1), uint64(2), byte(0), []byte("data"), []byte(nil), uint(9))
	f.Fuzz(func(t *testing.T, index, term uint64, kind byte, data, extensions []byte, bit uint) {
		raw := raft.Log{Index: index, Term: term, Type: raft.LogType(kind), Data: data, Extensions: bytes.Clone(extensions)}
		if unseal(&raw, index) == nil && len(extensions) < envelopeLength {
			t.Fatal("an entry without an envelope is taken")
		}
		entry := &raft.Log{Index: index, Term: term, Type: raft.LogType(kind), Data: data, Extensions: extensions}
		sealed := seal(entry)
		damaged := *sealed
		if damaged.Extensions = flip(sealed.Extensions, bit); unseal(&damaged, index) == nil {
			t.Fatalf("bit %d of the envelope flipped is taken", bit)
		}
		damaged = *sealed
		if damaged.Data = flip(data, bit); len(data) > 0 && unseal(&damaged, index) == nil {
			t.Fatalf("bit %d of the data flipped is taken", bit)
		}
		if err := unseal(sealed, index); err != nil || !bytes.Equal(sealed.Extensions, extensions) || !bytes.Equal(sealed.Data, data) {
			t.Fatalf("got %+v, %v", sealed, err)
		}
		if value, err := unsealValue(data, sealValue(data, extensions)); err != nil || !bytes.Equal(value, extensions) {
			t.Fatalf("value %x, %v", value, err)
		}
	})
}

func FuzzSnapshotFile(f *testing.F) {
	header, err := encodeSnapHeader(raft.SnapshotMeta{ID: "1-1", Index: 1, Term: 1, Version: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(header, 0, 0, 0, 0), uint(17))
	f.Fuzz(func(t *testing.T, b []byte, bit uint) {
		readSnapshot(t, b)
		if good := readSnapshot(t, b); good && readSnapshot(t, flip(b, bit)) {
			t.Fatalf("bit %d flipped is taken", bit)
		}
	})
}

// readSnapshot tells whether bytes are taken for a snapshot.
func readSnapshot(t *testing.T, b []byte) bool {
	t.Helper()
	fs := vfs.NewMem(vfs.MemOptions{})
	file, err := fs.Create("s")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	snap, _, err := decodeSnapHeader(file)
	return err == nil && snap.check() == nil
}
