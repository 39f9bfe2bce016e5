package ctl

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spf13/cobra"

	"strake/internal/errs"
	"strake/internal/tls"
)

// profiled gives a daemon the flag --pprof, and serves Go's profiles there while
// the daemon runs.
func (a *app) profiled(c *cobra.Command) *cobra.Command {
	address := c.Flags().String("pprof", "", "address to serve Go's profiles at, HOST:PORT; loopback only")
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *address == "" {
			return run(cmd, args)
		}
		stop, err := a.serveProfiles(cmd.Context(), *address)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd, args), stop())
	}
	return c
}

// serveProfiles serves profiles until stop is called. They say much and ask
// nothing of the reader, so an address beyond loopback is refused
// (PermissionDenied). Other errors are those of tls.Policy.Listen.
func (a *app) serveProfiles(ctx context.Context, address string) (stop func() error, err error) {
	l, err := tls.Policy{}.Listen(ctx, address)
	if err != nil {
		return nil, errs.Wrap(err, "serve profiles")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index) // heap, goroutine, allocs, block, mutex
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	a.logger().Info("profiles are served", "address", l.Addr().String())
	return func() error {
		err := s.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return errs.As(err, errs.Internal, "serve profiles")
	}, nil
}
