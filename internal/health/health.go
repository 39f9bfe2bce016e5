package health

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	api "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

// What can be asked.
const (
	Alive = ""
	Ready = "ready"
)

// Register adds the service to a gRPC server. ready gives nil when the daemon
// serves, else why it does not; it is called for each question and must not block.
func Register(g grpc.ServiceRegistrar, ready func() error) {
	api.RegisterHealthServer(g, &server{ready: ready})
}

type server struct {
	api.UnimplementedHealthServer
	ready func() error
}

// Check implements the standard service.
func (s *server) Check(_ context.Context, r *api.HealthCheckRequest) (*api.HealthCheckResponse, error) {
	switch r.GetService() {
	case Alive:
	case Ready:
		if err := s.ready(); err != nil {
			return &api.HealthCheckResponse{Status: api.HealthCheckResponse_NOT_SERVING}, nil
		}
	default:
		return nil, status.Errorf(codes.NotFound, "no service %q, there are %q and %q", r.GetService(), Alive, Ready)
	}
	return &api.HealthCheckResponse{Status: api.HealthCheckResponse_SERVING}, nil
}

// Ask asks the daemon at HOST:PORT; nil is a yes. Errors: Unavailable when it
// does not serve or can't be reached, and those of ctx.
func Ask(ctx context.Context, policy tls.Policy, addr, service string) error {
	conn, err := grpc.NewClient("passthrough:///"+addr, policy.DialOptions()...)
	if err != nil {
		return errs.As(err, errs.InvalidArgument, "ask %s", addr)
	}
	defer conn.Close()
	r, err := api.NewHealthClient(conn).Check(ctx, &api.HealthCheckRequest{Service: service})
	if err != nil {
		return errs.Wrap(pb.FromStatus(err), "ask %s", addr)
	}
	if r.GetStatus() != api.HealthCheckResponse_SERVING {
		return errs.New(errs.Unavailable, "ask "+addr, "it runs and does not serve yet")
	}
	return nil
}
