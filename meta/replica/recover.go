package replica

import (
	"errors"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// Recover rewrites a stopped member's directory so that the group consists of
// the given members, this one (opts.ID) among them, from the next start on. It
// is the way out when most members are lost for ever, or when all addresses
// changed at once. What the lost ones acknowledged and this one never got is
// gone, so the member with the longest log is the one to recover; the others
// start with empty directories and are added one by one. opts needs ID, FS,
// Machine and Logger.
func Recover(opts Options, members []string) (err error) {
	opts.Timing = opts.Timing.withDefaults()
	opts.Logger = loggerOr(opts.Logger)
	var failed error
	opts.Fatal = func(err error) {}
	self := false
	for _, m := range members {
		self = self || m == opts.ID
	}
	if !self {
		return errs.New(errs.InvalidArgument, "recover the cell", "%s is not among the members", opts.ID)
	}
	old, err := readMarker(opts.FS)
	if err != nil {
		return err
	}
	if old.Member != "" && old.Member != opts.ID { // the address changed
		if err := writeMarker(opts.FS, marker{Member: opts.ID, Cell: old.Cell}); err != nil {
			return err
		}
	}
	d, err := openDisk(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if !d.state {
		return errs.New(errs.InvalidArgument, "recover the cell", "the directory holds no state").
			WithHint("run it on the member whose log is the longest")
	}
	f := &fsm{machine: opts.Machine, fail: func(err error) { failed = err }}
	config := opts.Timing.config(raft.ServerID(opts.ID), opts.Logger)
	err = raft.RecoverCluster(config, f, d.guard, d.guard, d.snaps, nil, configurationOf(members))
	return errs.As(errors.Join(err, failed), errs.Corrupt, "recover the cell")
}
