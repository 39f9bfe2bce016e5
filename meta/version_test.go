package meta

import (
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"strake/internal/errs"
	"strake/meta/state"
	"strake/proto/pb"
)

// TestARequestThatIsNotUnderstoodChangesNothing has a newer program ask for a volume with
// a property that this one does not know, and tell of itself in ways it does not know.
func TestARequestThatIsNotUnderstoodChangesNothing(t *testing.T) {
	addrs := addresses(t, 1)
	c := api(t, newNode(t, addrs[0], addrs...).start())
	newer := protowire.AppendVarint(protowire.AppendTag(nil, 9000, protowire.VarintType), 1)
	create := &pb.CreateVolumeRequest{Command: 1, Name: "v", SizeBytes: 1 << 30, Geometry: &pb.Geometry{K: 2, M: 1}}
	create.Geometry.ProtoReflect().SetUnknown(newer)
	if _, err := call(c, pb.MetaClient.CreateVolume, create); errs.KindOf(err) != errs.Version || errs.HintOf(err) == "" {
		t.Errorf("a volume of a geometry with a field that is not known: %v", err)
	}
	if _, err := call(c, pb.MetaClient.GetVolume, &pb.GetVolumeRequest{Name: "v"}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("it is there: %v", err)
	}
	open := &pb.OpenSessionRequest{Command: 2, Owner: "me"}
	open.ProtoReflect().SetUnknown(newer)
	must(c, pb.MetaClient.OpenSession, open)
}

// TestALeaderProposesNothingThatAMemberCantRead lets opening a session be a command of
// the next version: it is refused while a member is of this one, or says nothing, harms
// nobody, and goes through once all members are newer.
func TestALeaderProposesNothingThatAMemberCantRead(t *testing.T) {
	addrs := addresses(t, 3)
	var reads [3]atomic.Uint32
	var nodes []*node
	for i, a := range addrs {
		n := newNode(t, a, addrs...)
		reads[i].Store(state.Version)
		n.cfg.reads = reads[i].Load
		n.cfg.since = func(c state.Command) uint32 {
			if c.Type() == state.TypeOpenSession {
				return state.Version + 1
			}
			return state.Since(c)
		}
		nodes = append(nodes, n.start())
	}
	c := api(t, nodes...)
	must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	open := func() error {
		_, err := call(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 7, Owner: "me"})
		return err
	}
	for i := range nodes {
		if err := open(); errs.KindOf(err) != errs.Version || errs.HintOf(err) == "" || !strings.Contains(err.Error(), addrs[2]) {
			t.Fatalf("with %d of three updated: %v", i, err)
		}
		reads[i].Store(state.Version + 1)
	}
	for _, n := range nodes {
		select {
		case err := <-n.Fatal():
			t.Fatalf("%s ended: %v", n.cfg.Advertise, err)
		default:
		}
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
}
