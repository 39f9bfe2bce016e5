package telemetry

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"strake/internal/errs"
	"strake/internal/tls"
)

const (
	headerTimeout = 5 * time.Second
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4 // at once
)

// Endpoint serves /metrics. Close it.
type Endpoint struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// Listen serves the figures of roles, Go's and the process's at HOST:PORT/metrics.
// It follows the policy of every listener: beyond loopback only when that is
// allowed. Errors: InvalidArgument, Unavailable, and those of the policy.
func Listen(ctx context.Context, policy tls.Policy, addr string, log *slog.Logger, roles ...prometheus.Collector) (*Endpoint, error) {
	l, err := policy.Listen(ctx, addr)
	if err != nil {
		return nil, errs.Wrap(err, "serve metrics")
	}
	registry := prometheus.NewRegistry()
	roles = append(roles, collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC, collectors.MetricsScheduler)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), network{})
	for _, r := range roles {
		if err := registry.Register(r); err != nil {
			l.Close()
			return nil, errs.As(err, errs.Internal, "serve metrics")
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout}))
	e := &Endpoint{listener: l, done: make(chan struct{}), server: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}}
	go func() {
		defer close(e.done)
		if err := e.server.Serve(l); err != nil && err != http.ErrServerClosed {
			log.Error("metrics are served no longer", "err", err)
		}
	}()
	return e, nil
}

// Address is where it listens.
func (e *Endpoint) Address() string { return e.listener.Addr().String() }

// Close ends scrapes under way and waits for the endpoint's goroutine; a nil
// endpoint has nothing to close.
func (e *Endpoint) Close() {
	if e == nil {
		return
	}
	e.server.Close()
	<-e.done
}
