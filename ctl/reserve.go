package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
)

func (a *app) reserveCommand() *cobra.Command {
	return group("reserve", "keep bandwidth of a class for jobs", a.reserveCreate(), a.reserveList(), a.reserveShow(), a.reserveRenew(), a.reserveRemove())
}

func (a *app) reserveCreate() *cobra.Command {
	r := client.Reservation{}
	var bandwidth size
	var dry bool
	c := &cobra.Command{
		Use: "create JOB --bandwidth BYTES", Short: "keep bandwidth for a job, if the cell can", Args: exactArgs(1),
		Long: `Keep bandwidth or operations a second for a job, that is for its tenant's work in a class, in the whole cell, until its
time is over. It is accepted only if what the devices were measured to do, less one server,
less what is reserved, holds it. Figures are of what devices do: a write counts with its parity.
The same again for the same job succeeds.`,
		Example: "  strake reserve create job-4711 --class training --bandwidth 8GiB --ttl 2h\n  strake reserve create job-4711 --class inference --iops 20000 --ttl 24h --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Job, r.Rate.Bytes = args[0], int64(bandwidth)
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				got, err := cell.Reserve(ctx, r, dry)
				if err != nil {
					return err
				}
				if err := a.print(got, func(w io.Writer) { admissionText(w, got, dry) }); err != nil || got.Fits {
					return err
				}
				return errs.New(errs.NoSpace, "reserve for job "+r.Job, "%s is short", rateText(got.Short)).WithHint("%s", expectedText(got))
			})
		},
	}
	f := c.Flags()
	f.StringVar(&r.Tenant, "tenant", layout.DefaultTenant, "whose volumes it is for: reads and writes of others in the class don't use it up")
	f.StringVar(&r.Class, "class", "training", "class of the job's reads and writes")
	f.Var(&bandwidth, "bandwidth", "bytes a second")
	f.Int64Var(&r.Rate.Ops, "iops", 0, "operations a second")
	f.DurationVar(&r.TTL, "ttl", time.Hour, "how long it lasts unless it is renewed")
	f.BoolVar(&dry, "dry-run", false, "say whether it would fit, keep nothing")
	return c
}

func admissionText(w io.Writer, a client.Admission, dry bool) {
	said := "kept"
	switch {
	case dry && a.Fits:
		said = "would fit"
	case !a.Fits:
		said = "would not fit"
	}
	free := qos.Free(qos.Rate(a.Capacity), qos.Rate(a.Reserved))
	pairs(w, [][2]string{{"job", a.Reservation.Job}, {"reservation", rateText(a.Reservation.Rate) + " " + said},
		{"capacity less one server", rateText(a.Capacity)}, {"reserved", rateText(a.Reserved)}, {"free, of either", rateText(client.Rate(free))}})
	if dry {
		fmt.Fprintln(w)
		capacityLines(w, a.Devices, a.Unmeasured)
	}
}

// capacityLines tells how devices were measured.
func capacityLines(w io.Writer, devices []client.DeviceCapacity, unmeasured int) {
	for i := range devices {
		fmt.Fprintf(w, "  device %d: %s\n", devices[i].Device, capacityText(&devices[i]))
	}
	if unmeasured > 0 {
		fmt.Fprintf(w, "  %d devices were not measured and count for nothing: `strake server calibrate`\n", unmeasured)
	}
}

func expectedText(a client.Admission) string {
	if a.Expected == 0 {
		return "no reservation that ends makes room for it: ask for less, or add servers"
	}
	return fmt.Sprintf("enough ends in %v unless it is renewed", a.Expected.Round(time.Second))
}

func (a *app) reserveList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list reservations, and what can still be reserved", Args: exactArgs(0), Example: "  strake reserve ls\n  strake reserve ls -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, capacity, err := cell.Reservations(ctx, "")
				if err != nil {
					return err
				}
				return a.print(map[string]any{"reservations": orEmpty(list), "capacity": capacity}, func(w io.Writer) { reservationTable(w, list, capacity) })
			})
		},
	}
}

func reservationTable(w io.Writer, list []client.Reservation, c client.Capacity) {
	var rows [][]string
	for _, r := range list {
		rows = append(rows, []string{r.Job, r.Tenant, r.Class, rateText(r.Rate), r.Left.Round(time.Second).String(), rateText(r.Served)})
	}
	table(w, []string{"JOB", "TENANT", "CLASS", "RESERVED", "LEFT", "GETS NOW"}, rows)
	fmt.Fprintf(w, "\ncapacity less one server: %s\n", rateText(c.Total))
	capacityLines(w, c.Devices, c.Unmeasured)
}

func (a *app) reserveShow() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "show a job's reservation", Args: exactArgs(1), Example: "  strake reserve show job-4711",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, _, err := cell.Reservations(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(list[0], func(w io.Writer) { reservationText(w, list[0]) })
			})
		},
	}
}

func reservationText(w io.Writer, r client.Reservation) {
	pairs(w, [][2]string{{"job", r.Job}, {"tenant", r.Tenant}, {"class", r.Class}, {"reserved", rateText(r.Rate)}, {"left", fmt.Sprintf("%v of %v", r.Left.Round(time.Second), r.TTL)},
		{"the tenant gets in the class now", rateText(r.Served)}})
}

func (a *app) reserveRenew() *cobra.Command {
	var ttl time.Duration
	c := &cobra.Command{
		Use: "renew JOB", Short: "begin a reservation's time anew", Args: exactArgs(1), Example: "  strake reserve renew job-4711\n  strake reserve renew job-4711 --ttl 8h",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				r, err := cell.RenewReservation(ctx, args[0], ttl)
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) { reservationText(w, r) })
			})
		},
	}
	c.Flags().DurationVar(&ttl, "ttl", 0, "another time (default: the one it has)")
	return c
}

func (a *app) reserveRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm JOB", Short: "give a job's reservation back", Args: exactArgs(1), Example: "  strake reserve rm job-4711",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				if err := cell.EndReservation(ctx, args[0]); err != nil {
					return err
				}
				return a.print(map[string]string{"ended": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "reservation of job %s ended\n", args[0]) })
			})
		},
	}
}
