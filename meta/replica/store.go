package replica

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"

	"strake/internal/errs"
	"strake/internal/vfs"
)

const (
	logDir    = "log"
	logMeta   = "log/meta"
	snapDir   = "snapshots"
	lockFile  = "lock"
	walLength = 16 << 20 // bytes of one file of the log
)

// rejoinHint says what to do with a server whose directory can't be read.
const rejoinHint = "this server's state is damaged; to rejoin as new: strake meta rm THIS-SERVER, empty its directory, start it again, strake meta add THIS-SERVER"

// disk is all that one member keeps: the log, snapshots and the marker.
type disk struct {
	id    string
	fs    vfs.FS
	lock  vfs.Lock
	wal   *wal.WAL
	guard *guard
	snaps *snapshots
	state bool // there was raft state when it was opened
	lost  bool // there was a marker, but no state

	mu     sync.Mutex // held across the marker's write: it has one writer at a time
	marker marker     // guarded by mu
}

// openDisk opens a member's directory and reads all of it once: a server whose
// log or newest snapshot is damaged refuses to start.
func openDisk(opts Options) (*disk, error) {
	d := &disk{id: opts.ID, fs: opts.FS}
	if err := d.open(opts); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *disk) open(opts Options) (err error) {
	for _, dir := range []string{logDir, snapDir} {
		if err := d.fs.MkdirAll(dir); err != nil {
			return errs.Wrap(err, "make %s", dir)
		}
	}
	if err := d.fs.SyncDir("."); err != nil {
		return errs.Wrap(err, "make the directory durable")
	}
	if d.lock, err = d.fs.Lock(lockFile); err != nil {
		return errs.Wrap(err, "lock the directory")
	}
	if d.marker, err = readMarker(d.fs); err != nil {
		return err
	}
	if d.marker.Member != "" && d.marker.Member != opts.ID {
		return errs.New(errs.InvalidArgument, "open the directory", "it belongs to member %s, not to %s", d.marker.Member, opts.ID).
			WithHint("advertise %s, or recover the cell under new addresses", d.marker.Member)
	}
	if err := d.openLog(opts); err != nil {
		return err
	}
	if d.snaps, err = openSnapshots(d.fs, opts.Logger); err != nil {
		return err
	}
	return d.check()
}

func (d *disk) openLog(opts Options) error {
	log, err := wal.Open(logDir,
		wal.WithMetaStore(&walMeta{fs: d.fs, name: logMeta}),
		wal.WithSegmentFiler(walFiler{segment.NewFiler(logDir, walFS{d.fs})}),
		wal.WithSegmentSize(opts.Timing.logFile()),
		wal.WithLogger(hclogOf(opts.Logger)))
	if err != nil {
		return errs.As(err, errs.Corrupt, "open the log").(*errs.Error).WithHint("%s", rejoinHint)
	}
	d.wal = log
	var below store = log
	if opts.wrapStore != nil {
		below = opts.wrapStore(below)
	}
	d.guard = newGuard(below, opts.Timing.Watchdog, opts.Fatal, func() error { return d.mark(opts.ID, 0) })
	d.guard.isBorn = d.marker.Member != ""
	return nil
}

// check reads every entry of the log and sees that log and snapshot join.
func (d *disk) check() error {
	has, err := raft.HasExistingState(d.guard, d.guard, d.snaps)
	if err != nil {
		return errs.Wrap(err, "look for state")
	}
	d.state, d.lost = has, !has && d.marker.Member != ""
	covered, err := d.snaps.newestIndex()
	if err != nil {
		return err
	}
	first, err := d.guard.FirstIndex()
	if err != nil {
		return errs.Wrap(err, "read the log")
	}
	last, err := d.guard.LastIndex()
	if err != nil {
		return errs.Wrap(err, "read the log")
	}
	if first > covered+1 {
		return errs.New(errs.Corrupt, "read the log", "it starts at entry %d and the newest snapshot ends at %d", first, covered).
			WithHint("%s", rejoinHint)
	}
	if has { // a crash may have come between the first state and the marker
		if err := d.mark(d.id, 0); err != nil {
			return err
		}
		d.guard.isBorn = true
	}
	d.guard.formed = covered > 0
	var entry raft.Log
	for i := first; i <= last && i > 0; i++ {
		if err := d.guard.GetLog(i, &entry); err != nil {
			return errs.Wrap(err, "read the log").(*errs.Error).WithHint("%s", rejoinHint)
		}
		d.guard.note(&entry)
	}
	return nil
}

// mark makes the marker say that this directory is a member's.
func (d *disk) mark(member string, cell uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := marker{Member: member, Cell: max(cell, d.marker.Cell)}
	if m == d.marker {
		return nil
	}
	if err := writeMarker(d.fs, m); err != nil {
		return err
	}
	d.marker = m
	return nil
}

func (d *disk) close() error {
	var err error
	if d.wal != nil {
		err = d.wal.Close()
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// loggerOr gives a logger that drops everything where none was given.
func loggerOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
