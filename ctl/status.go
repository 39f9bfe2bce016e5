package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"strake/client"
)

// healthExit is the exit code of `strake status` by health.
var healthExit = map[string]int{"healthy": 0, "degraded": 1, "at-risk": 2}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "the cell in one look; exit 0 healthy, 1 degraded, 2 data at risk", Args: exactArgs(0),
		Example: "  strake status\n  strake status --cell 10.0.0.1:7400,10.0.0.2:7400,10.0.0.3:7400 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				s, err := cell.Status(ctx)
				if err != nil {
					return err
				}
				a.exit = healthExit[s.Health]
				return a.print(s, func(w io.Writer) { statusText(w, s) })
			})
		},
	}
}

func statusText(w io.Writer, s client.CellStatus) {
	pairs(w, [][2]string{
		{"cell", s.Cell}, {"health", s.Health},
		{"chunk servers", fmt.Sprintf("%d up, %d down", s.ServersUp, s.ServersDown)},
		{"volumes", strconv.FormatUint(s.Volumes, 10)},
		{"segments", fmt.Sprintf("%d: %d degraded, %d at risk, %d lost", s.Segments, s.SegmentsDegraded, s.SegmentsAtRisk, s.SegmentsLost)},
		{"space", fmt.Sprintf("%s used, %s reserved and %s other of %s", sizeText(s.UsedBytes), sizeText(s.ReservedBytes), sizeText(s.OtherBytes), sizeText(s.TotalBytes))},
	})
	var rows [][]string
	for _, m := range s.Members {
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case !m.Voter:
			role = "catching up"
		}
		state := "reachable"
		if !m.Reachable {
			state = "unreachable"
		}
		rows = append(rows, []string{m.Address, role, state, strconv.FormatUint(m.Lag, 10)})
	}
	fmt.Fprintln(w)
	table(w, []string{"METADATA SERVER", "ROLE", "STATE", "LAG"}, rows)
	for _, p := range s.Problems {
		fmt.Fprintf(w, "\n! %s\n", p)
	}
}

func (a *app) serverCommand() *cobra.Command {
	return group("server", "chunk servers", a.serverList(), a.serverDrain(), a.serverUndrain(), a.serverRemove(), a.serverCalibrate())
}

func (a *app) serverList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list chunk servers and their devices", Args: exactArgs(0), Example: "  strake server ls",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.Servers(ctx)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"servers": orEmpty(list)}, func(w io.Writer) { serverTable(w, list) })
			})
		},
	}
}

func serverTable(w io.Writer, list []client.ServerInfo) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no chunk servers; start one: strake chunkd serve --device DIR --cell HOST:PORT")
		return
	}
	var rows [][]string
	for _, s := range list {
		for i, d := range s.Devices {
			row := []string{"", "", "", "", strconv.FormatUint(d.ID, 10), d.State, sizeText(d.UsedBytes), sizeText(d.ReservedBytes), sizeText(d.TotalBytes), capacityText(d.Capacity), d.Path}
			if i == 0 {
				copy(row, []string{strconv.FormatUint(s.ID, 10), s.Address, s.Domain, s.State})
			}
			rows = append(rows, row)
		}
	}
	table(w, []string{"ID", "ADDRESS", "DOMAIN", "STATE", "DEVICE", "STATE", "USED", "RESERVED", "TOTAL", "CAPACITY", "PATH"}, rows)
	for _, s := range list {
		for _, d := range s.Devices {
			if d.Note != "" {
				fmt.Fprintf(w, "\n! %s\n", d.Note)
			}
		}
	}
}
