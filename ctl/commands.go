package ctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
	"strake/internal/layout"
)

// commands are the top-level commands; their order is the help's.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.devCommand(), a.metaCommand(), a.chunkdCommand(),
		a.statusCommand(), a.healthCommand(), a.cellCommand(), a.serverCommand(), a.deviceCommand(),
		a.volumeCommand(), a.snapshotCommand(), a.tagCommand(), a.rebuildCommand(), a.rebalanceCommand(), a.scrubCommand(),
		a.classCommand(), a.reserveCommand(), a.topCommand(), a.sloCommand(),
		a.eventsCommand(), a.explainCommand(),
		a.benchCommand(), a.configCommand(), a.versionCommand(),
	}
}

// noun annotates the commands that only have verbs below them.
const noun = "noun"

// group makes a noun.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Annotations: map[string]string{noun: use}, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("no verb %q; %s --help lists them", args[0], cmd.CommandPath())
		}
		return cmd.Help()
	}}
	c.AddCommand(verbs...)
	return c
}

// exactArgs wants n arguments, named in the usage line.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s wants %d argument(s), got %d: %s", cmd.CommandPath(), n, len(args), cmd.UseLine())
		}
		return nil
	}
}

// withCell dials the cell, runs f and closes.
func (a *app) withCell(ctx context.Context, f func(context.Context, *client.Cell) error) (err error) {
	if err := a.chooseCell(ctx); err != nil {
		return err
	}
	trace, done, err := a.openTrace()
	if err != nil {
		return err
	}
	defer func() {
		if e := done(); err == nil {
			err = e
		}
	}()
	cell, err := client.Dial(ctx, client.Config{Addresses: a.config.Cell, Waiting: a.waiting, Trace: trace})
	if err != nil {
		return err
	}
	err = f(ctx, cell)
	if closeErr := cell.Close(); err == nil {
		err = closeErr
	}
	return err
}

// withVolume is withCell for a verb on one volume: a name that no volume can have
// is refused before anything is dialled. In a fleet the cell that has the volume is
// looked for; a new volume, and one that was removed, must be given its cell.
func (a *app) withVolume(ctx context.Context, op, name string, f func(context.Context, *client.Cell) error) error {
	if _, err := layout.ParseVolumeName(name); err != nil {
		return errs.As(err, errs.InvalidArgument, "%s", op).(*errs.Error).
			WithHint("a name is [tenant/]volume, each part 1 to %d characters of a-z 0-9 . _ -", layout.MaxName)
	}
	if !strings.HasPrefix(op, "create") && !strings.HasPrefix(op, "undelete") {
		if err := a.findCell(ctx, name); err != nil {
			return err
		}
	}
	return a.withCell(ctx, f)
}
