package chunkd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc"

	"strake/chunkd/calibrate"
	"strake/chunkd/janitor"
	"strake/chunkd/server"
	"strake/chunkd/store"
	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/health"
	"strake/internal/layout"
	"strake/internal/telemetry"
	"strake/proto/pb"
)

// Server is a running chunk server.
type Server struct {
	cfg      Config
	log      *slog.Logger
	meta     *dial.Meta
	identity identity
	devices  []*device

	dataAddress, controlAddress string // as advertised
	data, control               net.Listener
	id                          layout.ServerID // written at start, then by heartbeats alone

	metas []string // noted on the devices; of start, then of heartbeats alone

	plane        *server.Server
	classes      *classes
	probers      []*prober // one for each device
	calibrations *calibrations
	metrics      *telemetry.Endpoint // nil: none
	grpc         *grpc.Server
	janitor      *janitor.Janitor

	stop   context.CancelFunc // ends heartbeats and watchers
	done   sync.WaitGroup     // all goroutines
	ended  sync.Once
	endErr error // set by the first Close
}

// Run runs a chunk server until ctx ends, then drains, syncs and closes it. It
// returns nil after a clean stop.
func Run(ctx context.Context, cfg Config) error {
	s, err := Start(ctx, cfg)
	if err != nil {
		switch errs.KindOf(err) {
		case errs.Unavailable, errs.Canceled, errs.Deadline:
			if ctx.Err() != nil {
				return nil // asked to stop while it waited for the metadata service
			}
		}
		return err
	}
	<-ctx.Done()
	return s.Close()
}

// Start starts a chunk server and returns once it is registered and serves. It
// waits for the metadata service as long as ctx lasts; a started server runs on
// after ctx until Close.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	meta, err := dial.NewMeta(cfg.Cell, cfg.Policy)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Logger, meta: meta, stop: func() {}}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.log.Info("chunk server started", "server", s.ID(), "cell", fmt.Sprintf("%x", uint64(s.identity.cell)), "data", s.dataAddress, "control", s.controlAddress, "devices", len(s.devices))
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	if err = s.listen(ctx); err != nil {
		return err
	}
	if s.devices, s.identity, err = inspect(&s.cfg); err != nil {
		return err
	}
	s.recallMetas()
	if s.identity.cell == 0 {
		if s.identity.cell, err = s.findCell(ctx); err != nil {
			return err
		}
	}
	if s.devices, err = open(ctx, s.devices, s.identity, &s.cfg); err != nil {
		return err
	}
	if err = s.register(ctx); err != nil {
		return err
	}
	s.keepMetas()
	s.serve()
	if s.cfg.Metrics != "" {
		s.metrics, err = telemetry.Listen(ctx, s.cfg.Policy, s.cfg.Metrics, s.log, newFigures(s.plane, s.classes.name))
	}
	return err
}

// listen opens both listeners; nobody is answered yet.
func (s *Server) listen(ctx context.Context) (err error) {
	if s.data, err = s.cfg.Policy.Listen(ctx, s.cfg.Listen); err != nil {
		return err
	}
	if s.control, err = s.cfg.Policy.Listen(ctx, s.cfg.Control); err != nil {
		return err
	}
	if s.dataAddress, err = advertised(s.cfg.Advertise, s.data); err != nil {
		return err
	}
	s.controlAddress, err = advertised(s.cfg.AdvertiseControl, s.control)
	return err
}

// serve starts all goroutines.
func (s *Server) serve() {
	cfg := server.Config{Cell: s.identity.cell, Server: s.id, Limits: s.cfg.Limits, Logger: s.log}
	keep := janitor.Config{Cell: s.identity.cell, Server: s.id, Meta: s.meta, Dial: s.cfg.Policy.Dial, Logger: s.log,
		RebuildRate: s.cfg.Upkeep.RebuildRate, ScrubRate: s.cfg.Upkeep.ScrubRate, ScrubCycle: s.cfg.Upkeep.ScrubCycle, SweepEvery: s.cfg.Upkeep.SweepEvery}
	for _, d := range s.devices {
		cfg.Devices = append(cfg.Devices, server.Device{ID: d.store.Superblock().Device, Path: d.dir, Store: d.store, Sched: d.sched})
	}
	s.plane = server.New(cfg)
	s.calibrations = newCalibrations(s.measurables)
	s.classes = newClasses(s.plane, s.calibrations.of)
	for _, d := range cfg.Devices {
		keep.Devices = append(keep.Devices, janitor.Device{ID: d.ID, Store: s.device(d.ID), Sched: s.plane.Sched(d.ID)})
	}
	keep.Made, keep.Gone = s.plane.Made, s.plane.Gone
	s.janitor = janitor.New(keep)
	s.grpc = grpc.NewServer(append(s.cfg.Policy.ServerOptions(), server.Typed()...)...)
	pb.RegisterChunkServer(s.grpc, &control{server.NewControl(s.plane, s.cfg.Recoverer), s.janitor, s.calibrations})
	health.Register(s.grpc, s.ready)

	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.done.Go(func() { s.unless("data plane", s.plane.Serve(s.data)) })
	s.done.Go(func() { s.unless("control service", s.grpc.Serve(s.control)) })
	for _, d := range s.devices {
		s.done.Go(func() { s.watch(ctx, d) })
		p := newProber(d)
		s.probers = append(s.probers, p)
		s.done.Go(func() { p.run(ctx) })
	}
	s.done.Go(func() { s.heartbeats(ctx) })
	if s.cfg.Calibrate {
		s.done.Go(func() { s.join(ctx) })
	}
}

// measurables are the devices that serve.
func (s *Server) measurables() (list []measurable) {
	for _, d := range s.devices {
		if id := d.store.Superblock().Device; d.store.Err() == nil {
			list = append(list, measurable{id, calibrate.Device{New: d.trial, Sched: s.plane.Sched(id)}})
		}
	}
	return list
}

// ready tells whether a device serves. Before the server is registered nobody is
// answered at all.
func (s *Server) ready() (err error) {
	for _, d := range s.devices {
		if err = d.store.Err(); err == nil {
			return nil
		}
	}
	return errs.Wrap(err, "every device failed")
}

// device gives the store of a device.
func (s *Server) device(id layout.DeviceID) *store.Store {
	for _, d := range s.devices {
		if d.store.Superblock().Device == id {
			return d.store
		}
	}
	return nil
}

// control is the control service: the server's calls, the janitor's, and Calibrate.
type control struct {
	*server.Control
	*janitor.Janitor
	*calibrations
}

// unless logs why a listener ended, unless it was asked to.
func (s *Server) unless(what string, err error) {
	if err != nil {
		s.log.Error("listener failed", "listener", what, "err", err)
	}
}

// watch logs a device's failure; the others go on.
func (s *Server) watch(ctx context.Context, d *device) {
	st := d.store
	select {
	case <-st.Failed():
		s.log.Error("device failed, it no longer answers", "device", st.Superblock().Device, "path", d.dir, "err", st.Err())
	case <-ctx.Done():
	}
}

// DataAddress is where clients reach the data plane.
func (s *Server) DataAddress() string { return s.dataAddress }

// ControlAddress is where the control service is reached.
func (s *Server) ControlAddress() string { return s.controlAddress }

// ID is what the metadata service calls the server.
func (s *Server) ID() layout.ServerID { return s.plane.ID() }

// Stored is what the units on all its devices take at this moment; a heartbeat told
// the metadata service a while ago.
func (s *Server) Stored() (n uint64) {
	for _, d := range s.devices {
		n += d.store.Usage().Stored
	}
	return n
}

// Close stops the server: requests that were received are answered within
// Config.Drain, then all is made durable and closed. It gives the first error of
// a device; a second Close gives the same again.
func (s *Server) Close() error {
	s.ended.Do(func() {
		s.stop()
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
		defer cancel()
		s.drain(ctx)
		s.done.Wait()
		s.endErr = closeAll(s.devices)
		s.meta.Close()
	})
	return s.endErr
}

// drain ends both services.
func (s *Server) drain(ctx context.Context) {
	if s.plane == nil { // never served
		for _, l := range []net.Listener{s.data, s.control} {
			if l != nil {
				l.Close()
			}
		}
		return
	}
	s.metrics.Close()
	s.janitor.Close()
	s.plane.Close(ctx)
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	s.grpc.GracefulStop()
	cut()
}
