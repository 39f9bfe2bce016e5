package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strake/client"
	"strake/internal/errs"
)

func (a *app) classCommand() *cobra.Command {
	return group("class", "quality-of-service classes", a.classList(), a.classShow(), a.classSet(), a.classAdd(), a.classRemove())
}

func (a *app) classList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list the classes", Args: exactArgs(0), Example: "  strake class ls\n  strake class ls -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.Classes(ctx)
				if err != nil {
					return err
				}
				return a.print(orEmpty(list), func(w io.Writer) { classTable(w, list) })
			})
		},
	}
}

func classTable(w io.Writer, list []client.Class) {
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{c.Name, strconv.FormatInt(c.Weight, 10), rateText(c.Reservation), rateText(c.Limit), latencyText(c.Target), sloText(c)})
	}
	table(w, []string{"CLASS", "WEIGHT", "RESERVATION", "LIMIT", "DEVICE TARGET", "OBJECTIVE"}, rows)
}

// rateText writes a rate as people read it.
func rateText(r client.Rate) string {
	switch {
	case r.Bytes == 0 && r.Ops == 0:
		return "-"
	case r.Bytes == 0:
		return fmt.Sprintf("%d ops/s", r.Ops)
	case r.Ops == 0:
		return sizeText(uint64(max(0, r.Bytes))) + "/s"
	}
	return fmt.Sprintf("%s/s, %d ops/s", sizeText(uint64(max(0, r.Bytes))), r.Ops)
}

func latencyText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

func sloText(c client.Class) string {
	switch {
	case c.SLO == 0:
		return "-"
	case c.SLOBytes == 0:
		return fmt.Sprintf("p99 %v", c.SLO)
	}
	return fmt.Sprintf("p99 %v up to %s", c.SLO, sizeText(uint64(c.SLOBytes)))
}

func (a *app) classShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CLASS", Short: "show one class", Args: exactArgs(1), Example: "  strake class show inference",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				c, err := cell.Class(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(c, func(w io.Writer) { classText(w, c) })
			})
		},
	}
}

func classText(w io.Writer, c client.Class) {
	kind := "added"
	if c.Builtin {
		kind = "built in"
	}
	pairs(w, [][2]string{{"class", fmt.Sprintf("%s (%d, %s)", c.Name, c.Number, kind)}, {"weight", strconv.FormatInt(c.Weight, 10)},
		{"reservation", rateText(c.Reservation)}, {"limit", rateText(c.Limit)}, {"device target", latencyText(c.Target)}, {"objective", sloText(c)}})
}

// classFlags are the figures that class set and class add take. Only those that
// are given change the class.
type classFlags struct {
	weight, reserveOps, limitOps int64
	reserve, limit, sloSize      size
	target, slo                  time.Duration
}

func (o *classFlags) add(f *pflag.FlagSet) {
	f.Int64Var(&o.weight, "weight", 0, "share of what is not reserved, against all other weights, 1 to 10000 (default 100)")
	f.Var(&o.reserve, "reserve", "bytes a second kept for the class in the whole cell, parity counted; 0: none")
	f.Int64Var(&o.reserveOps, "reserve-iops", 0, "operations a second kept for the class; 0: none")
	f.Var(&o.limit, "limit", "bytes a second that each tenant's work in the class gets at most, parity counted; at least 256KiB; 0: any")
	f.Int64Var(&o.limitOps, "limit-iops", 0, "operations a second, on all devices together, that it gets at most; 0: any")
	f.DurationVar(&o.target, "target", 0, "how long one request should take at a device while the class is in use; 0: any")
	f.DurationVar(&o.slo, "slo", 0, "objective: 99 of 100 requests take at most that; 0: none")
	f.Var(&o.sloSize, "slo-size", "the objective is for requests of at most that; 0: any")
}

// into changes what was given.
func (o *classFlags) into(f *pflag.FlagSet, c *client.Class) {
	set := func(name string, change func()) {
		if f.Changed(name) {
			change()
		}
	}
	set("weight", func() { c.Weight = o.weight })
	set("reserve", func() { c.Reservation.Bytes = int64(o.reserve) })
	set("reserve-iops", func() { c.Reservation.Ops = o.reserveOps })
	set("limit", func() { c.Limit.Bytes = int64(o.limit) })
	set("limit-iops", func() { c.Limit.Ops = o.limitOps })
	set("target", func() { c.Target = o.target })
	set("slo", func() { c.SLO = o.slo })
	set("slo-size", func() { c.SLOBytes = int64(o.sloSize) })
}

func (a *app) classSet() *cobra.Command {
	var o classFlags
	c := &cobra.Command{
		Use: "set CLASS", Short: "change a class; chunk servers have it within a second", Args: exactArgs(1),
		Example: "  strake class set inference --slo 2ms --slo-size 64KiB\n  strake class set checkpoint --limit 2GiB --weight 40",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				c, err := cell.Class(ctx, args[0])
				if err != nil {
					return err
				}
				if o.into(cmd.Flags(), &c); cmd.Flags().NFlag() == 0 {
					return usagef("nothing to change; %s --help lists the figures", cmd.CommandPath())
				}
				if c, err = cell.SetClass(ctx, c); err != nil {
					return err
				}
				return a.print(c, func(w io.Writer) { classText(w, c) })
			})
		},
	}
	o.add(c.Flags())
	return c
}

func (a *app) classAdd() *cobra.Command {
	var o classFlags
	c := &cobra.Command{
		Use: "add NAME", Short: "add a class", Args: exactArgs(1), Example: "  strake class add nightly --weight 20 --limit 500MiB",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := client.Class{Name: args[0], Weight: 100}
			o.into(cmd.Flags(), &c)
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) (err error) {
				if c, err = cell.AddClass(ctx, c); err != nil {
					return err
				}
				return a.print(c, func(w io.Writer) { classText(w, c) })
			})
		},
	}
	o.add(c.Flags())
	return c
}

func (a *app) classRemove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "rm NAME", Short: "remove a class that was added and that nothing uses", Args: exactArgs(1), Example: "  strake class rm nightly --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return errs.New(errs.InvalidArgument, "remove class "+args[0], "its figures would be lost, and programs that ask for it refused").WithHint("add --yes")
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				if err := cell.RemoveClass(ctx, args[0]); err != nil {
					return err
				}
				return a.print(map[string]string{"removed": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "removed class %s\n", args[0]) })
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "remove it")
	return c
}
