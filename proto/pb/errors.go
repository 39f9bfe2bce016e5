package pb

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"strake/internal/errs"
)

// ToStatus turns an error into a gRPC status error that carries its kind. It
// returns nil for nil.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	kind := errs.KindOf(err)
	detail := &ErrorDetail{Kind: uint32(kind), Message: err.Error(), Hint: errs.HintOf(err)}
	var typed *errs.Error
	if errors.As(err, &typed) {
		detail.Leader = typed.Leader
	}
	st, detailErr := status.New(code(kind), err.Error()).WithDetails(detail)
	if detailErr != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return st.Err()
}

// FromStatus rebuilds the typed error of a gRPC call. An error without a kind
// (the connection failed, a foreign server) gets the nearest one: a server that
// lacks the whole service, or speaks HTTP alone, is as good as none.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		if detail, ok := d.(*ErrorDetail); ok {
			return &errs.Error{Kind: errs.Kind(detail.Kind), Message: detail.Message, Hint: detail.Hint, Leader: detail.Leader}
		}
	}
	switch st.Code() {
	case codes.Canceled:
		return errs.As(context.Canceled, errs.Canceled, "")
	case codes.DeadlineExceeded:
		return errs.New(errs.Deadline, "", "%s", st.Message())
	case codes.ResourceExhausted:
		return errs.New(errs.TooLarge, "", "%s", st.Message())
	case codes.Unimplemented:
		if strings.HasPrefix(st.Message(), "unknown method") { // an older server of the right kind
			return errs.New(errs.Version, "", "%s", st.Message())
		}
		return errs.New(errs.Unavailable, "", "something else answers there: %s", st.Message())
	}
	return errs.New(errs.Unavailable, "", "%s", plain(st.Message()))
}

// plain takes gRPC's words off a failure to connect: what the socket said stays.
func plain(message string) string {
	_, said, found := strings.Cut(message, "Error while dialing: ")
	if !found && strings.Contains(message, "error reading server preface") {
		return "it takes connections but does not answer"
	}
	if !found {
		return message
	}
	return strings.TrimSuffix(said, `"`)
}

func code(k errs.Kind) codes.Code {
	switch k {
	case errs.InvalidArgument, errs.TooLarge, errs.Version:
		return codes.InvalidArgument
	case errs.NotFound, errs.NotHere:
		return codes.NotFound
	case errs.AlreadyExists, errs.Conflict:
		return codes.AlreadyExists
	case errs.NotLeader, errs.Unavailable:
		return codes.Unavailable
	case errs.NoSpace, errs.Overloaded:
		return codes.ResourceExhausted
	case errs.Deadline:
		return codes.DeadlineExceeded
	case errs.Canceled:
		return codes.Canceled
	case errs.Unauthenticated:
		return codes.Unauthenticated
	case errs.PermissionDenied, errs.WrongCell:
		return codes.PermissionDenied
	case errs.Internal:
		return codes.Internal
	}
	return codes.FailedPrecondition
}
