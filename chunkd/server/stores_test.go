package server

import (
	"testing"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// openStore gives a device's real store over a file system.
func openStore(t testing.TB, fsys vfs.FS) *store.Store {
	t.Helper()
	id := format.Superblock{Cell: testCell, Server: layout.UUID{1}, UUID: layout.UUID{2}}
	if err := store.Format(fsys, id); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(fsys, id, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDevice(testDevice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// eachStore runs a test over the fake and over the real store.
func eachStore(t *testing.T, test func(t *testing.T, c *cluster, s Store)) {
	t.Run("fake", func(t *testing.T) {
		c := start(t, Limits{})
		test(t, c, c.store)
	})
	t.Run("real", func(t *testing.T) {
		s := openStore(t, vfs.NewMem(vfs.MemOptions{}))
		test(t, start(t, Limits{}, s), s)
	})
}
