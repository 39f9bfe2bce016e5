package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

// idArgument reads the id that a verb names.
func idArgument(what, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return 0, usagef("%q is no %s id; `strake server ls` lists them", text, what)
	}
	return id, nil
}

// numbered makes a verb on one server or device.
func (a *app) numbered(verb, what, short, example string, do func(context.Context, *client.Cell, uint64) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID", Short: short, Args: exactArgs(1), Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := idArgument(what, args[0])
			if err != nil {
				return err
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error { return do(ctx, cell, id) })
		},
	}
}

func (a *app) serverDrain() *cobra.Command {
	return a.numbered("drain", "server", "move all shards of a server elsewhere; it takes no new ones",
		"  strake server drain 3\n  strake rebuild status", func(ctx context.Context, cell *client.Cell, id uint64) error {
			return a.changeServer(ctx, cell, id, client.DrainDevices, "draining", "see how far it is:  strake rebuild status")
		})
}

func (a *app) serverUndrain() *cobra.Command {
	return a.numbered("undrain", "server", "take a drain back", "  strake server undrain 3",
		func(ctx context.Context, cell *client.Cell, id uint64) error {
			return a.changeServer(ctx, cell, id, client.UndrainDevices, "undrained", "")
		})
}

func (a *app) changeServer(ctx context.Context, cell *client.Cell, id uint64, change client.DeviceChange, done, next string) error {
	devices, err := cell.ChangeServer(ctx, id, change)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"server": id, "devices": orEmpty(devices), "done": done}, func(w io.Writer) {
		fmt.Fprintf(w, "server %d: %d devices %s\n", id, len(devices), done)
		if next != "" {
			fmt.Fprintf(w, "\n%s\n", next)
		}
	})
}

func (a *app) serverRemove() *cobra.Command {
	var yes bool
	c := a.numbered("rm", "server", "forget a server that is down and holds no shard", "  strake server rm 3 --yes",
		func(ctx context.Context, cell *client.Cell, id uint64) error {
			s, err := findServer(ctx, cell, id)
			if err != nil {
				return err
			}
			if !yes {
				return errs.New(errs.InvalidArgument, "remove server "+strconv.FormatUint(id, 10), "%s with %d devices would be forgotten; it could come back as a new server only", s.Address, len(s.Devices)).
					WithHint("add --yes to forget it")
			}
			if err := cell.RemoveServer(ctx, id); err != nil {
				return err
			}
			return a.print(map[string]any{"removed": id}, func(w io.Writer) { fmt.Fprintf(w, "server %d is forgotten\n", id) })
		})
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func findServer(ctx context.Context, cell *client.Cell, id uint64) (client.ServerInfo, error) {
	list, err := cell.Servers(ctx)
	if err != nil {
		return client.ServerInfo{}, err
	}
	for _, s := range list {
		if s.ID == id {
			return s, nil
		}
	}
	return client.ServerInfo{}, errs.New(errs.NotFound, "find server", "server %d is not known", id).WithHint("`strake server ls` lists them")
}

func (a *app) deviceCommand() *cobra.Command {
	return group("device", "devices of chunk servers", a.deviceReplace())
}

func (a *app) deviceReplace() *cobra.Command {
	var yes bool
	c := a.numbered("replace", "device", "give a device up for ever; its shards are made again on others",
		"  strake device replace 7 --yes\n  strake rebuild status", func(ctx context.Context, cell *client.Cell, id uint64) error {
			return a.replaceDevice(ctx, cell, id, yes)
		})
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) replaceDevice(ctx context.Context, cell *client.Cell, id uint64, yes bool) error {
	list, err := cell.Servers(ctx)
	if err != nil {
		return err
	}
	op := "replace device " + strconv.FormatUint(id, 10)
	for _, s := range list {
		for _, d := range s.Devices {
			if d.ID != id {
				continue
			}
			if !yes {
				return errs.New(errs.InvalidArgument, op, "%s in %s of server %d would be given up for ever and made again from the other shards", sizeText(d.UsedBytes), d.Path, s.ID).
					WithHint("add --yes; `strake server drain %d` empties it first, with no loss of redundancy", s.ID)
			}
			if err := cell.ChangeDevice(ctx, id, client.RemoveDevices); err != nil {
				return err
			}
			return a.print(map[string]any{"device": id, "server": s.ID, "used_bytes": d.UsedBytes}, func(w io.Writer) {
				fmt.Fprintf(w, "device %d of server %d is given up; start the server with an empty directory in its place\n\nsee how far its rebuild is:  strake rebuild status\n", id, s.ID)
			})
		}
	}
	return errs.New(errs.NotFound, op, "it is not known").WithHint("`strake server ls` lists devices")
}
