package ctl

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"strake/internal/errs"
)

// Exit codes of the command.
const (
	exitFailed = 1 // refused or failed; a typed error is on stderr
	exitUsage  = 2 // wrong usage
)

// app is what every verb shares.
type app struct {
	out, err io.Writer
	output   string // -o: "text" or "json"
	trace    string // --trace: where reads and writes are recorded; empty: nowhere
	config   config
	began    bool // a verb runs: from here on, an error is no wrong usage
	exit     int  // set by a verb that ends with something else than 0 (status)
	bars     bars // on the terminal
}

// Main runs the command and gives its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	out := &sink{to: stdout}
	a := &app{out: out, err: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.failed()
	}
	switch {
	case err == nil:
		return a.exit
	case a.isUsage(err):
		a.printError(asUsage(err, cmd.CommandPath()), a.json() || asksJSON(args))
		return exitUsage
	}
	a.printError(err, a.json() || asksJSON(args))
	return exitFailed
}

// asksJSON finds -o json in a command line that could not be parsed.
func asksJSON(args []string) bool {
	for i, arg := range args {
		if slices.Contains([]string{"-ojson", "-o=json", "--output=json"}, arg) ||
			(arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == "json" {
			return true
		}
	}
	return false
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "strake",
		Short: "a distributed, erasure-coded block service for GPUs",
		Long: `strake stripes volumes with Reed-Solomon over chunk servers and serves them to GPU nodes.

Start a whole cell on this machine:   strake dev
Create a volume in it:                strake volume create demo --size 10GiB
Put data in:                          tar c DIR | strake volume import demo -`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVarP(&a.output, "output", "o", "text", "output format: text or json")
	flags.String("cell", "", "metadata servers, HOST:PORT[,HOST:PORT...], or etcd://HOST:PORT[,HOST:PORT...]/CELL (default "+defaultCell+"; STRAKE_CELL)")
	flags.String("config", "", "configuration file (default "+defaultConfig+"; STRAKE_CONFIG)")
	flags.StringVar(&a.trace, "trace", "", "record every read and write of volumes that this command does into a file")
	root.AddCommand(a.commands()...)
	root.SetOut(a.out) // before completion, which keeps it
	root.InitDefaultCompletionCmd()
	giveCompletionExamples(root)
	a.markBegin(root)
	return root
}

// prepare checks the global flags and reads the configuration.
func (a *app) prepare(cmd *cobra.Command) (err error) {
	if a.output != "text" && a.output != "json" {
		return usageError{errs.New(errs.InvalidArgument, "", "output format %q", a.output).WithHint("use -o text or -o json")}
	}
	a.config, err = loadConfig(cmd, os.Getenv)
	return err
}

// markBegin has every verb of the tree say that it runs, after the command line
// was found to be in order.
func (a *app) markBegin(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			a.began = true
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		a.markBegin(sub)
	}
}

// giveCompletionExamples completes what cobra says of its own command.
func giveCompletionExamples(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Example = "  strake completion bash > /etc/bash_completion.d/strake"
		for _, shell := range c.Commands() {
			shell.Example = "  strake completion " + shell.Name()
		}
	}
}
