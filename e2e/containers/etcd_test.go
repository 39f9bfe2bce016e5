package containers

import (
	"testing"

	"strake/e2e/container"
)

// TestAnEtcdThatWantsCertificateAndPassword forms a cell that finds itself by such
// an etcd, and loses it for a while.
func TestAnEtcdThatWantsCertificateAndPassword(t *testing.T) {
	c := start(t, container.Options{Chunkds: 3, Etcd: true, Secure: true})
	l := startLoad(t, c)
	must(t, c.Etcd.Kill(t.Context()))
	l.progress(60)
	must(t, c.Etcd.Start(t.Context()))
	startLoad(t, c).end() // who is new finds the cell there
	l.end()
}
