package backup

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"testing"

	"strake/internal/errs"
)

var sample = About{Cell: 7, Applied: 9, Members: []string{"a:1", "b:1"}, AtUnix: 1700000000}

const frozen = "testdata/backup.v1"

func encoded(t testing.TB, snapshot string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, sample)
	if err == nil {
		_, err = io.WriteString(w, snapshot)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (About, string, error) {
	about, r, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return about, "", err
	}
	snapshot, err := io.ReadAll(r)
	return about, string(snapshot), err
}

func TestABackupComesBackAsItWas(t *testing.T) {
	about, snapshot, err := open(encoded(t, "the state"))
	if err != nil || snapshot != "the state" || !reflect.DeepEqual(about, sample) {
		t.Fatalf("got %+v, %q, %v", about, snapshot, err)
	}
}

func TestNoBackupWithAFlippedBitOrCutShortIsUsed(t *testing.T) {
	good := encoded(t, "the state")
	for i := range len(good) * 8 {
		b := bytes.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		if _, _, err := open(b); errs.KindOf(err) != errs.Corrupt && errs.KindOf(err) != errs.Version {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for n := range good {
		if _, _, err := open(good[:n]); errs.KindOf(err) != errs.Corrupt {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestABackupOfVersion1IsRead(t *testing.T) {
	b, err := os.ReadFile(frozen)
	if err != nil {
		t.Fatal(err)
	}
	about, snapshot, err := open(b)
	if err != nil || snapshot != "the state" || !reflect.DeepEqual(about, sample) || !bytes.Equal(b, encoded(t, "the state")) {
		t.Fatalf("got %+v, %q, %v", about, snapshot, err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(encoded(f, "the state"))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if about, snapshot, err := open(b); err == nil && len(snapshot) > len(b) {
			t.Fatalf("%+v and %d bytes out of %d", about, len(snapshot), len(b))
		}
	})
}
