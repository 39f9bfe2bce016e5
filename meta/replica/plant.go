package replica

import (
	"errors"
	"io"

	"strake/internal/errs"
)

// Plant makes an empty directory that of a group's only member, with a state that
// covers the log up to index. opts needs ID, FS, Machine and Logger. After an error
// the directory must be emptied.
func Plant(opts Options, index uint64, state io.WriterTo) (err error) {
	const firstTerm = 1
	opts.Timing = opts.Timing.withDefaults()
	opts.Logger = loggerOr(opts.Logger)
	opts.Fatal = func(error) {}
	if names, err := opts.FS.List("."); err != nil || len(names) > 0 {
		return errors.Join(err, errs.New(errs.Conflict, "fill the directory", "it is not empty").WithHint("give an empty directory"))
	}
	d, err := openDisk(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	sink, err := d.snaps.Create(1, index, firstTerm, configurationOf([]string{opts.ID}), 1, nil)
	if err != nil {
		return err
	}
	if _, err := state.WriteTo(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	return d.guard.SetUint64([]byte("CurrentTerm"), firstTerm)
}
