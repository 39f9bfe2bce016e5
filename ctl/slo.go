package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

// sloMissed is the part of requests that an objective lets take longer.
const sloMissed = 0.01

// attainment is how a class's objective was kept.
type attainment struct {
	Class    string  `json:"class"`
	P99Ns    int64   `json:"p99_ns"`
	Bytes    int64   `json:"bytes"`
	Judged5m uint64  `json:"judged_5m"`
	Kept5m   float64 `json:"kept_5m"` // part of the requests; 1 when there were none
	Burn5m   float64 `json:"burn_5m"` // 1: exactly as many late ones as the objective allows
	Judged1h uint64  `json:"judged_1h"`
	Kept1h   float64 `json:"kept_1h"`
	Burn1h   float64 `json:"burn_1h"`
	Met      bool    `json:"met"` // over the hour
}

func (a *app) sloCommand() *cobra.Command {
	return &cobra.Command{
		Use: "slo", Short: "show how the classes' objectives are kept", Args: exactArgs(0),
		Long: `Show, for each class with an objective (strake class set NAME --slo 2ms), which part of its
requests met it over 5 minutes and an hour, and the burn: how many times faster than allowed
the late ones (1 %) are used up. The time counts from receipt to reply at the chunk servers;
what they refuse for want of time or room, or fail to do, counts as late.`,
		Example: "  strake slo\n  strake slo -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				classes, err := cell.Classes(ctx)
				if err != nil {
					return err
				}
				servers, err := cell.Figures(ctx)
				if err != nil {
					return err
				}
				list := attainments(classes, servers)
				return a.print(orEmpty(list), func(w io.Writer) { sloTable(w, list) })
			})
		},
	}
}

// attainments sums the servers' counts up.
func attainments(classes []client.Class, servers []client.ServerFigures) (list []attainment) {
	for _, c := range classes {
		if c.SLO == 0 {
			continue
		}
		sum := client.SLOFigures{}
		for _, s := range servers {
			for _, o := range s.SLOs {
				if o.Class == c.Number {
					sum.Judged5m, sum.Late5m = sum.Judged5m+o.Judged5m, sum.Late5m+o.Late5m
					sum.Judged1h, sum.Late1h = sum.Judged1h+o.Judged1h, sum.Late1h+o.Late1h
				}
			}
		}
		late := func(late, judged uint64) float64 {
			if judged == 0 {
				return 0
			}
			return float64(late) / float64(judged)
		}
		short, hour := late(sum.Late5m, sum.Judged5m), late(sum.Late1h, sum.Judged1h)
		list = append(list, attainment{Class: c.Name, P99Ns: int64(c.SLO), Bytes: c.SLOBytes, Judged5m: sum.Judged5m, Kept5m: 1 - short, Burn5m: short / sloMissed,
			Judged1h: sum.Judged1h, Kept1h: 1 - hour, Burn1h: hour / sloMissed, Met: hour <= sloMissed})
	}
	return list
}

func sloTable(w io.Writer, list []attainment) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no class has an objective; strake class set inference --slo 2ms --slo-size 64KiB gives one")
		return
	}
	var rows [][]string
	for _, o := range list {
		met := "met"
		if !o.Met {
			met = "MISSED"
		}
		rows = append(rows, []string{o.Class, sloText(client.Class{SLO: time.Duration(o.P99Ns), SLOBytes: o.Bytes}), fmt.Sprintf("%.3f%%", 100*o.Kept5m), fmt.Sprintf("%.2f", o.Burn5m),
			fmt.Sprintf("%.3f%%", 100*o.Kept1h), fmt.Sprintf("%.2f", o.Burn1h), fmt.Sprint(o.Judged1h), met})
	}
	table(w, []string{"CLASS", "OBJECTIVE", "KEPT 5m", "BURN 5m", "KEPT 1h", "BURN 1h", "REQUESTS 1h", ""}, rows)
}
