package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

const (
	// eventsPage is how many events one call asks for.
	eventsPage = 500
	// eventsPause is how often --follow asks for new ones.
	eventsPause = time.Second
)

func (a *app) eventsCommand() *cobra.Command {
	var most int
	var follow bool
	c := &cobra.Command{
		Use: "events", Short: "tell what happened in the cell lately", Args: exactArgs(0),
		Long: `Tell what happened in the cell lately, as the metadata server that leads remembers it
since it leads. With --follow it goes on until it is stopped; with -o json then, each
event is one line.`,
		Example: "  strake events\n  strake events --follow -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 1 || most > eventsPage {
				return usagef("--most %d: 1 to %d are possible", most, eventsPage)
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.Events(ctx, 0, most)
				if err != nil {
					return err
				}
				if follow {
					return a.followEvents(ctx, cell, list)
				}
				return a.print(map[string]any{"events": orEmpty(list)}, func(w io.Writer) { eventLines(w, list) })
			})
		},
	}
	c.Flags().IntVar(&most, "most", 50, "how many of the newest to tell")
	c.Flags().BoolVar(&follow, "follow", false, "go on with what happens from now on")
	return c
}

// followEvents tells what happens until ctx ends, which is no failure. A new leader's
// events begin anew.
func (a *app) followEvents(ctx context.Context, cell *client.Cell, list []client.Event) error {
	last := uint64(0)
	for {
		for _, e := range list {
			last = e.ID
			if !a.json() {
				eventLines(a.out, []client.Event{e})
			} else if err := json.NewEncoder(a.out).Encode(e); err != nil {
				return err
			}
		}
		t := time.NewTimer(eventsPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		var err error
		if list, err = cell.Events(ctx, last, eventsPage); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func eventLines(w io.Writer, list []client.Event) {
	for _, e := range list {
		fmt.Fprintf(w, "%s  %-22s %s\n", e.At.Local().Format(time.DateTime), e.Name, e.Text)
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing since the metadata server leads")
	}
}
