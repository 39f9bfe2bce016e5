package pb

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"strake/internal/errs"
)

func TestTypedErrorSurvivesAStatus(t *testing.T) {
	in := errs.New(errs.NotLeader, "create volume", "127.0.0.1:7401 does not lead").WithHint("ask 127.0.0.1:7400")
	in.Leader = "127.0.0.1:7400"
	var out *errs.Error
	if err := FromStatus(ToStatus(in)); !errors.As(err, &out) {
		t.Fatalf("no typed error: %v", err)
	}
	if out.Kind != errs.NotLeader || out.Leader != in.Leader || out.Hint != in.Hint || out.Error() != in.Error() {
		t.Fatalf("got %+v, want %+v", out, in)
	}
}

func TestAFailureToConnectIsToldPlainly(t *testing.T) {
	const said = `dial tcp 127.0.0.1:1: connect: connection refused`
	err := FromStatus(status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: `+said+`"`))
	if err.Error() != said || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v, %v", errs.KindOf(err), err)
	}
	if got := FromStatus(status.Error(codes.Unavailable, "closing")).Error(); got != "closing" {
		t.Errorf("got %q", got)
	}
}

// TestAForeignServerIsAsGoodAsNone: an address of another role, or of a web server,
// must not end a call that other addresses can answer.
func TestAForeignServerIsAsGoodAsNone(t *testing.T) {
	for said, want := range map[string]errs.Kind{
		"unknown service strake.v1.Meta":                                               errs.Unavailable,
		"unexpected HTTP status code received from server: 404 (Not Found); malformed": errs.Unavailable,
		"unknown method ListTags for service strake.v1.Meta":                           errs.Version,
	} {
		if err := FromStatus(status.Error(codes.Unimplemented, said)); errs.KindOf(err) != want {
			t.Errorf("%q: got %v, want %v", said, errs.KindOf(err), want)
		}
	}
}

func TestEveryKindSurvivesAStatus(t *testing.T) {
	for k := errs.InvalidArgument; k <= errs.OutOfRange; k++ {
		if got := errs.KindOf(FromStatus(ToStatus(errs.New(k, "x", "y")))); got != k {
			t.Errorf("%v came back as %v", k, got)
		}
	}
}
