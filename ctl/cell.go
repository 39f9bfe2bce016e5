package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/discovery"
	"strake/internal/errs"
)

func (a *app) cellCommand() *cobra.Command {
	return group("cell", "the cells of a fleet", a.cellList())
}

func (a *app) cellList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list the cells that etcd knows", Args: exactArgs(0),
		Long: `List the cells that etcd knows, each with its own status. Which etcd: --cell etcd://HOST,HOST.
A verb on a volume finds its cell by itself when --cell names etcd and no cell.`,
		Example: "  strake cell ls --cell etcd://e1,e2,e3\n  strake cell ls --cell 'etcd://e1?ca=/etc/etcd/ca.pem&user=strake&password-file=/etc/strake/etcd.password' -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !discovery.IsURL(a.config.Cell) {
				return errs.New(errs.InvalidArgument, "list cells", "%s is one cell; a fleet is listed in etcd", a.config.Cell).
					WithHint("give --cell etcd://HOST:PORT")
			}
			list, err := client.Fleet(cmd.Context(), client.Config{Addresses: a.config.Cell})
			if err != nil {
				return err
			}
			return a.print(map[string]any{"cells": orEmpty(list)}, func(w io.Writer) { cellTable(w, list) })
		},
	}
}

func cellTable(w io.Writer, list []client.FleetCell) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no cells; start one: strake meta serve --dir DIR --cell etcd://HOST:PORT/CELL")
		return
	}
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{c.Name, or(c.ID, "not formed"), c.Health, fmt.Sprintf("%d up, %d down", c.ServersUp, c.ServersDown),
			strconv.FormatUint(c.Volumes, 10), strings.Join(c.Servers, ",")})
	}
	table(w, []string{"CELL", "ID", "HEALTH", "CHUNK SERVERS", "VOLUMES", "METADATA SERVERS"}, rows)
	for _, c := range list {
		if c.Error != "" {
			fmt.Fprintf(w, "\n! %s: %s\n", c.Name, c.Error)
		}
	}
}

// chooseCell settles which cell of a fleet is meant when --cell names etcd alone:
// the only one there is.
func (a *app) chooseCell(ctx context.Context) error {
	etcd, fleet, err := a.fleet()
	if err != nil || !fleet {
		return err
	}
	list, err := discovery.Cells(ctx, etcd)
	if err != nil {
		return err
	}
	if len(list) != 1 {
		var names []string
		for _, c := range list {
			names = append(names, c.Name)
		}
		return errs.New(errs.InvalidArgument, "find the cell", "%s names no cell, and etcd has %d: %s", etcd, len(list), strings.Join(names, ", ")).
			WithHint("name one: --cell etcd://HOST:PORT/CELL")
	}
	a.config.Cell = etcd.Of(list[0].Name).String()
	return nil
}

// findCell settles which cell of a fleet is meant when --cell names etcd alone:
// the one that has the volume.
func (a *app) findCell(ctx context.Context, volume string) error {
	_, fleet, err := a.fleet()
	if err != nil || !fleet {
		return err
	}
	found, err := client.FindVolume(ctx, client.Config{Addresses: a.config.Cell}, volume)
	if err == nil {
		a.config.Cell = found
	}
	return err
}

// fleet tells whether --cell names etcd and no cell in it.
func (a *app) fleet() (etcd discovery.Address, fleet bool, err error) {
	if !discovery.IsURL(a.config.Cell) {
		return etcd, false, nil
	}
	etcd, err = discovery.Parse(a.config.Cell)
	return etcd, etcd.Cell == "", err
}
