package meta

import (
	"strings"
	"testing"

	"strake/internal/dial"
	"strake/internal/discovery"
	"strake/internal/discovery/etcdtest"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// listed starts n servers that know nothing but etcd.
func listed(t *testing.T, etcd *etcdtest.Etcd, n int) []*node {
	t.Helper()
	var nodes []*node
	for _, a := range addresses(t, n) {
		node := newNode(t, a)
		node.cfg.Directory, node.cfg.Bootstrap = etcd.URL("prod"), n
		nodes = append(nodes, node.start())
	}
	return nodes
}

func viaEtcd(t *testing.T, etcd *etcdtest.Etcd) *apiClient {
	t.Helper()
	m, err := dial.NewMeta(etcd.URL("prod"), tls.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &apiClient{t: t, meta: m}
}

// Three servers that are started alike form one cell, which goes on, and comes
// back whole, while etcd is dead.
func TestServersThatEtcdListsFormACellAndThenNeedItNoMore(t *testing.T) {
	etcd := etcdtest.Start(t, "http")
	nodes := listed(t, etcd, 3)
	c := viaEtcd(t, etcd)
	first := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if len(first.Members) != 3 || first.Cell == 0 {
		t.Fatalf("status %v", first)
	}
	a, _ := discovery.Parse(etcd.URL("prod"))
	eventually(t, "the directory has the cell", func() bool {
		cells, _ := discovery.Cells(t.Context(), a)
		return len(cells) == 1 && cells[0].ID == first.Cell && len(cells[0].Addresses) == 3
	})
	etcd.Kill()
	for _, n := range nodes {
		n.Close()
	}
	for _, n := range nodes {
		n.start()
	}
	if again := must(c, pb.MetaClient.Status, &pb.StatusRequest{}); again.Cell != first.Cell {
		t.Fatalf("after the restart: %v", again)
	}
}

// A cell that exists is not formed again, whatever etcd says.
func TestAnEtcdThatForgotFormsNoSecondCell(t *testing.T) {
	etcd := etcdtest.Start(t, "http")
	nodes := listed(t, etcd, 3)
	c := viaEtcd(t, etcd)
	cell := must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Cell
	etcd.Kill()
	etcd.Forget()
	etcd.Restart()
	lost := nodes[0]
	lost.Close()
	lost.cfg.FS = vfs.NewMem(vfs.MemOptions{})
	lost.start()
	eventually(t, "the server without a disk stays out", func() bool { return strings.Contains(lost.waiting(), "strake meta rm") })
	if got := must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Cell; got != cell {
		t.Errorf("cell %x became %x", cell, got)
	}
}

func TestBootstrapIsBounded(t *testing.T) {
	_, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", FS: vfs.NewMem(vfs.MemOptions{}), Directory: "etcd://127.0.0.1:1/c"})
	if errs.KindOf(err) != errs.InvalidArgument {
		t.Fatalf("got %v", err)
	}
}
