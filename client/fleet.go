package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"strake/internal/discovery"
	"strake/internal/errs"
)

// fleetAtOnce bounds the cells that are asked at once.
const fleetAtOnce = 16

// FleetCell is one cell of a fleet: what etcd's directory says of it, and its own
// status, or why there is none.
type FleetCell struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`      // empty as long as it has not formed
	Address     string   `json:"address"` // as Config.Addresses takes it
	Servers     []string `json:"metadata_servers"`
	Health      string   `json:"health"` // healthy, degraded, at-risk, unreachable
	ServersUp   uint32   `json:"servers_up"`
	ServersDown uint32   `json:"servers_down"`
	Volumes     uint64   `json:"volumes"`
	Error       string   `json:"error,omitempty"`
}

// Fleet lists the cells that etcd knows, by name, each asked for its status.
// cfg.Addresses is `etcd://HOST:PORT[,HOST:PORT...]`; a cell in it does not count.
// A cell that does not answer within 5 s is listed as unreachable.
func Fleet(ctx context.Context, cfg Config) ([]FleetCell, error) {
	return visit(ctx, cfg, func(ctx context.Context, c *Cell, entry *FleetCell) error {
		s, err := c.Status(ctx)
		entry.Health, entry.ServersUp, entry.ServersDown, entry.Volumes = s.Health, s.ServersUp, s.ServersDown, s.Volumes
		return err
	})
}

// visit calls f for each cell of the fleet that can be dialled.
func visit(ctx context.Context, cfg Config, f func(context.Context, *Cell, *FleetCell) error) ([]FleetCell, error) {
	etcd, err := discovery.Parse(cfg.Addresses)
	if err != nil {
		return nil, err
	}
	known, err := discovery.Cells(ctx, etcd)
	if err != nil {
		return nil, err
	}
	list := make([]FleetCell, len(known))
	var group errgroup.Group
	group.SetLimit(fleetAtOnce)
	for i, k := range known {
		entry := &list[i]
		*entry = FleetCell{Name: k.Name, Address: etcd.Of(k.Name).String(), Servers: append([]string{}, k.Addresses...), Health: "unreachable"}
		if k.ID != 0 {
			entry.ID = fmt.Sprintf("%016x", k.ID)
		}
		group.Go(func() error {
			if err := entry.ask(ctx, cfg, f); err != nil {
				entry.Error = err.Error()
			}
			return nil
		})
	}
	return list, group.Wait()
}

func (e *FleetCell) ask(ctx context.Context, cfg Config, f func(context.Context, *Cell, *FleetCell) error) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if len(e.Servers) == 0 {
		return errs.New(errs.Unavailable, "", "none of its metadata servers is listed")
	}
	cfg.Addresses = e.Address
	cell, err := Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer cell.Close()
	return f(ctx, cell, e)
}

// FindVolume gives the address of the cell that has a volume, as Config.Addresses
// takes it. Errors: NotFound when every cell says no; InvalidArgument when several
// have one of that name; Unavailable when a cell that may have it does not answer.
func FindVolume(ctx context.Context, cfg Config, name string) (address string, err error) {
	var op = "find volume " + name
	list, err := visit(ctx, cfg, func(ctx context.Context, c *Cell, entry *FleetCell) error {
		_, err := c.Volume(ctx, name)
		if errs.KindOf(err) == errs.NotFound {
			entry.Health = ""
			return nil
		}
		if err == nil {
			entry.Health = "has it"
		}
		return err
	})
	if err != nil {
		return "", err
	}
	var has, silent []string
	for _, c := range list {
		switch {
		case c.Error != "":
			silent = append(silent, c.Name+": "+c.Error)
		case c.Health == "has it":
			has, address = append(has, c.Name), c.Address
		}
	}
	switch {
	case len(has) == 1:
		return address, nil
	case len(has) > 1:
		return "", errs.New(errs.InvalidArgument, op, "cells %s each have one", strings.Join(has, ", ")).WithHint("name the cell: --cell etcd://HOST/CELL")
	case len(silent) > 0:
		return "", errs.As(errors.New(strings.Join(silent, "; ")), errs.Unavailable, "%s, not in the cells that answer", op).(*errs.Error).
			WithHint("try again when all cells answer; strake cell ls tells which do")
	}
	return "", errs.New(errs.NotFound, op, "none of the fleet's %d cells has it", len(list)).WithHint("strake cell ls lists them")
}
