package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) explainCommand() *cobra.Command {
	return group("explain", "why something is as it is", a.explainVolume(), a.explainClass())
}

func (a *app) explainVolume() *cobra.Command {
	return &cobra.Command{
		Use: "volume NAME", Short: "tell what a volume waits for and why, and what is well", Args: exactArgs(1),
		Example: "  strake explain volume train",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "explain volume", args[0], func(ctx context.Context, cell *client.Cell) error {
				e, err := cell.ExplainVolume(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(e, func(w io.Writer) { explained(w, e) })
			})
		},
	}
}

func explained(w io.Writer, e client.Explanation) {
	state := "healthy"
	if !e.Healthy {
		state = "not healthy"
	}
	fmt.Fprintf(w, "%s is %s (%s)\n\n", e.Volume.Name, state, e.Volume.State)
	for _, f := range e.Findings {
		mark := " "
		if f.Bad {
			mark = "!"
		}
		fmt.Fprintf(w, "%s %s\n", mark, f.Text)
		if f.Hint != "" {
			fmt.Fprintf(w, "    try: %s\n", f.Hint)
		}
	}
}
