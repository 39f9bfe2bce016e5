package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) topCommand() *cobra.Command {
	var interval time.Duration
	var rounds int
	c := &cobra.Command{
		Use: "top", Short: "show what classes, servers and volumes do now", Args: exactArgs(0),
		Long: `Show, again and again, what each class, server and volume does: rates, the time in the queue
apart from the time at the device, and how much of the devices' time each class takes. At a
terminal the view stays in place; else, and with -o json, one follows the other.`,
		Example: "  strake top\n  strake top --interval 5s --rounds 1 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond || rounds < 0 {
				return usagef("--interval %v --rounds %d: at least 100ms, and 0 (for ever) or more", interval, rounds)
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error { return a.top(ctx, cell, interval, rounds) })
		},
	}
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks")
	c.Flags().IntVar(&rounds, "rounds", 0, "views to show; 0: until Ctrl-C")
	return c
}

// home puts the cursor at a terminal's begin and clears what is below.
const home = "\x1b[H\x1b[J"

// top shows views until ctx ends.
func (a *app) top(ctx context.Context, cell *client.Cell, interval time.Duration, rounds int) error {
	before, err := takeLook(ctx, cell)
	if err != nil {
		return err
	}
	for n := 0; rounds == 0 || n < rounds; n++ {
		select {
		case <-ctx.Done():
			return nil // the user has seen enough
		case <-time.After(interval):
		}
		now, err := takeLook(ctx, cell)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		r := now.since(before)
		before = now
		err = a.print(r, func(w io.Writer) {
			if s, ok := w.(*sink); ok && s.terminal() {
				fmt.Fprint(w, home)
			}
			fmt.Fprintf(w, "%s, over %.1f s\n\n", time.Now().Format("15:04:05"), r.Seconds)
			r.text(w)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
