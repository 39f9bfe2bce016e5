package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) serverCalibrate() *cobra.Command {
	var most time.Duration
	c := &cobra.Command{
		Use: "calibrate [ID]", Short: "measure what the devices of a server, or of all, can do", Args: cobra.MaximumNArgs(1),
		Long: `Measure what devices read and write a second, in long pieces and in blocks of 4 KiB. It takes
ten seconds at most; whatever the devices serve meanwhile goes first, and counts as done.
Reservations are admitted by what was found; server ls shows it, and how old it is.`,
		Example: "  strake server calibrate\n  strake server calibrate 3 --for 2s",
		RunE: func(cmd *cobra.Command, args []string) error {
			var id uint64
			if len(args) > 0 {
				var err error
				if id, err = idArgument("server", args[0]); err != nil {
					return err
				}
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.Calibrate(ctx, id, most)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"devices": orEmpty(list)}, func(w io.Writer) { calibrationTable(w, list) })
			})
		},
	}
	c.Flags().DurationVar(&most, "for", 8*time.Second, "measure for so long at most, up to 8s")
	return c
}

func calibrationTable(w io.Writer, list []client.Calibration) {
	var rows [][]string
	for _, d := range list {
		row := []string{strconv.FormatUint(d.Server, 10), strconv.FormatUint(d.Device, 10)}
		if d.Error != "" {
			rows = append(rows, append(row, d.Error))
			continue
		}
		rows = append(rows, append(row, sizeText(d.ReadBytes)+"/s", sizeText(d.WriteBytes)+"/s", fmt.Sprintf("%d/s", d.ReadOps), fmt.Sprintf("%d/s", d.WriteOps),
			(time.Duration(d.TookMs)*time.Millisecond).String()))
	}
	table(w, []string{"SERVER", "DEVICE", "READS", "WRITES", "4 KIB READS", "4 KIB WRITES", "TOOK"}, rows)
}

// capacityText is what a device was measured to do, how, and how long ago.
func capacityText(c *client.DeviceCapacity) string {
	if c == nil {
		return "not measured"
	}
	return fmt.Sprintf("%s (%s, %v ago)", rateText(c.Rate), c.How, c.Age)
}
