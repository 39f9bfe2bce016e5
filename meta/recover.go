package meta

import (
	"slices"

	"strake/internal/errs"
	"strake/meta/replica"
	"strake/meta/server"
)

// Recover makes the stopped server of cfg.Dir, under the name cfg.Advertise, the
// member of a cell that consists of members: when most metadata servers are lost
// for ever, or all addresses changed at once. What the lost servers acknowledged
// and this one never got is gone; run it on the server whose status showed the
// highest applied index, on one server only, and add the others as new.
func Recover(cfg Config, members []string) error {
	if cfg.Advertise == "" || !slices.Contains(members, cfg.Advertise) {
		return errs.New(errs.InvalidArgument, "recover the cell", "the members must name this server's advertised address")
	}
	fs, err := cfg.open()
	if err != nil {
		return err
	}
	return replica.Recover(replica.Options{
		ID: cfg.Advertise, FS: fs, Machine: server.NewMachine(nil), Logger: cfg.Logger, Timing: cfg.Raft,
	}, members)
}
