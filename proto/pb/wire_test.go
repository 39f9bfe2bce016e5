package pb

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"strake/internal/errs"
)

// newer gives a message a field that this program does not know.
func newer[M proto.Message](m M) M {
	const number = 1<<29 - 1
	r := m.ProtoReflect()
	r.SetUnknown(protoreflect.RawFields(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1)))
	return m
}

func TestWhatAServerMustNotServeIsRefused(t *testing.T) {
	spoken := func(v string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.Pairs(wireKey, v))
	}
	const create, fence, heartbeat = Chunk_CreateShards_FullMethodName, Chunk_Fence_FullMethodName, Meta_Heartbeat_FullMethodName
	deep := &CreateShardsRequest{Shards: []*ShardSpec{{}, {Shard: newer(&ShardRef{Segment: 9})}}}
	for _, test := range []struct {
		name, method string
		ctx          context.Context
		req          any
		want         errs.Kind
	}{
		{"a call of this version", create, spoken("1"), &CreateShardsRequest{}, errs.OK},
		{"of the next", create, spoken("2"), &CreateShardsRequest{}, errs.OK},
		{"of one that is no neighbour", create, spoken("3"), &CreateShardsRequest{}, errs.Version},
		{"of none that is a number", create, spoken("new"), &CreateShardsRequest{}, errs.Version},
		{"that names none", create, t.Context(), &CreateShardsRequest{}, errs.OK},
		{"with an unknown field", fence, spoken("2"), newer(&FenceRequest{}), errs.Version},
		{"with one deep within", create, spoken("1"), deep, errs.Version},
		{"a report with one", heartbeat, spoken("2"), newer(&HeartbeatRequest{}), errs.OK},
		{"a report of no neighbour", heartbeat, spoken("3"), &HeartbeatRequest{}, errs.Version},
		{"a question of another service", "/grpc.health.v1.Health/Check", spoken("3"), newer(&StatusRequest{}), errs.OK},
	} {
		if err := CheckCall(test.ctx, test.method, test.req); errs.KindOf(err) != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}
