package pb

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"strake/internal/errs"
)

// WireVersion is the version of the two services that this program speaks, which each
// call names. It is raised when a call changes so that the version before it must not
// serve it. Programs of neighbouring versions work with each other, so that a cell is
// upgraded server by server; a call that names none comes from version 1.
const WireVersion = 1

// wireKey names a call's metadata.
const wireKey = "strake-wire"

// reports are the calls that tell a server how somebody is. What is new in them is not
// missed by who doesn't know it; refusing them would take a newer server for a dead one.
var reports = map[string]bool{
	Meta_Peek_FullMethodName: true, Meta_RegisterServer_FullMethodName: true, Meta_Heartbeat_FullMethodName: true,
	Meta_OpenSession_FullMethodName: true, Meta_KeepSession_FullMethodName: true,
	Meta_ReportShards_FullMethodName: true, Meta_ReportBlocked_FullMethodName: true,
}

// CallOptions have every call of a connection name this program's version.
func CallOptions() []grpc.DialOption {
	unary := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(named(ctx), method, req, reply, conn, opts...)
	}
	stream := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return begin(named(ctx), desc, conn, method, opts...)
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}
}

func named(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, wireKey, strconv.Itoa(WireVersion))
}

// CheckCall refuses, with an error of kind Version, a request that this program must
// not serve: its caller's version is no neighbour, or it has a field that this program
// does not know and whose meaning it would leave out.
// Services that are not strake's, such as the questions of package health, are not
// concerned: whoever asks whether a server lives speaks no version of strake.
func CheckCall(ctx context.Context, method string, req any) error {
	if !strings.HasPrefix(method, "/strake.") {
		return nil
	}
	if v := versionOf(ctx); v < max(1, WireVersion-1) || v > WireVersion+1 {
		return errs.New(errs.Version, "", "the caller speaks version %d of strake's services, this server %d", v, WireVersion).
			WithHint("upgrade the older of them; one version after another")
	}
	m, ok := req.(proto.Message)
	if !ok || reports[method] {
		return nil
	}
	if in := unknown(m.ProtoReflect()); in != "" {
		return errs.New(errs.Version, "", "the request has a field in %s that this server does not know", in).
			WithHint("upgrade the server, or use the older program")
	}
	return nil
}

// versionOf is the version that a call names.
func versionOf(ctx context.Context) int {
	list := metadata.ValueFromIncomingContext(ctx, wireKey)
	if len(list) == 0 {
		return 1
	}
	v, err := strconv.Atoi(list[0])
	if err != nil {
		return -1
	}
	return v
}

// unknown names a message, of those that m is made of, which has a field that this
// program does not know; empty: none has.
func unknown(m protoreflect.Message) (in string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().Name())
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap(): // strake's maps have plain values
		case field.IsList():
			for i := 0; i < v.List().Len() && in == ""; i++ {
				in = unknown(v.List().Get(i).Message())
			}
		default:
			in = unknown(v.Message())
		}
		return in == ""
	})
	return in
}

// CheckedStream is a server's stream whose request is checked when it is received.
type CheckedStream struct {
	grpc.ServerStream
	Method string
}

// RecvMsg receives a request and checks it. Its error has no status yet.
func (s *CheckedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return CheckCall(s.Context(), s.Method, m)
}
