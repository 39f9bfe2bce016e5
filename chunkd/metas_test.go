package chunkd

import (
	"log/slog"
	"reflect"
	"testing"

	"strake/internal/discovery"
	"strake/internal/discovery/etcdtest"
)

// TestAChunkServerStartsWhileEtcdIsAway: it was started once before.
func TestAChunkServerStartsWhileEtcdIsAway(t *testing.T) {
	etcd := etcdtest.Start(t, "http")
	m, d := startMeta(t), disks{}
	at, err := discovery.Parse(etcd.URL("here"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := discovery.Register(at, m.addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	cfg := d.config(m, "a", "b")
	cfg.Cell = etcd.URL("here")
	s := started(t, cfg)
	<-m.registered
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if got := readMetas(d[name]); !reflect.DeepEqual(got, []string{m.addr}) {
			t.Errorf("device %s remembers %q", name, got)
		}
	}
	etcd.Kill()
	started(t, cfg)
	<-m.registered
}

func TestADamagedListOfMetadataServersIsPassedOver(t *testing.T) {
	good := encodeMetas([]string{"a:1", "b:2"})
	if got := decodeMetas(good); !reflect.DeepEqual(got, []string{"a:1", "b:2"}) {
		t.Fatalf("got %q", got)
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if got := decodeMetas(bad); got != nil {
			t.Errorf("byte %d changed: %q", i, got)
		}
		if got := decodeMetas(good[:i]); got != nil {
			t.Errorf("cut after %d bytes: %q", i, got)
		}
	}
	if got := decodeMetas(encodeMetas([]string{"no address"})); got != nil {
		t.Errorf("got %q", got)
	}
}

func FuzzDecodeMetas(f *testing.F) {
	f.Add(encodeMetas([]string{"a:1", "b:2"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list := decodeMetas(b); list != nil && string(encodeMetas(list)) != string(b) {
			t.Fatalf("%q is read as %q", b, list)
		}
	})
}
