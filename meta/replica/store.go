package replica

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta/replica/logstore"
)

const (
	logDir    = "log"
	logMeta   = "log/meta"
	snapDir   = "snapshots"
	lockFile  = "lock"
	logLength = 16 << 20 // bytes of one file of the log
)

// rejoinHint says what to do with a server whose directory can't be read.
const rejoinHint = "this server's state is damaged; to rejoin as new: strake meta rm THIS-SERVER, empty its directory, start it again, strake meta add THIS-SERVER"

// newerHint says what to do where a newer program has written.
const newerHint = "nothing is damaged, but this program is older than the one that wrote it: start that one, or a later one"

// unreadable gives the error of a directory that can't be read its advice, by its kind:
// Version keeps its own, and whatever it was before, all else is kind.
func unreadable(err error, kind errs.Kind, op string) error {
	if errs.KindOf(err) == errs.Version {
		return errs.Wrap(err, "%s", op).(*errs.Error).WithHint("%s", newerHint)
	}
	return errs.As(err, kind, "%s", op).(*errs.Error).WithHint("%s", rejoinHint)
}

// disk is all that one member keeps: the log, snapshots and the marker.
type disk struct {
	id      string
	fs      vfs.FS
	lock    vfs.Lock
	entries *logstore.Store
	guard   *guard
	snaps   *snapshots
	state   bool     // there was raft state when it was opened
	lost    bool     // there was a marker, but no state
	known   []string // members by the newest configuration, when it was opened

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
	votes, err := openStable(d.fs, logMeta)
	if err == nil {
		d.entries, err = logstore.Open(d.fs, logDir, opts.Timing.logFile(), votes)
	}
	if err != nil {
		return unreadable(err, errs.Corrupt, "open the log")
	}
	var below store = logAndVotes{d.entries, votes}
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
	half, err := d.halfFormed()
	if err != nil {
		return err
	}
	has = has && !half
	d.state, d.lost = has, !has && !half && d.marker.Member != ""
	covered, known, err := d.snaps.newestMembers()
	if err != nil {
		return err
	}
	d.known = known
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
		if err := d.live(); err != nil {
			return err
		}
	}
	d.guard.formed = covered > 0
	var entry raft.Log
	for i := first; i <= last && i > 0; i++ {
		if err := d.guard.GetLog(i, &entry); err != nil {
			return unreadable(err, errs.KindOf(err), "read the log")
		}
		d.guard.note(&entry)
		if entry.Type == raft.LogConfiguration {
			d.known = addressesOf(raft.DecodeConfiguration(entry.Data))
		}
	}
	return nil
}

// formTerm is the term in which raft makes a group; the first leader has the next.
const formTerm = 1

// halfFormed tells whether the making of a group was cut short before it was in the
// log, and takes back what there is of it. Such a directory has promised nothing: no
// vote and no entry are of that term. Left as it is, it would wait for a leader for ever.
func (d *disk) halfFormed() (bool, error) {
	key := []byte("CurrentTerm")
	term, err := d.guard.GetUint64(key)
	if err != nil || term != formTerm {
		return false, err
	}
	if last, err := d.guard.LastIndex(); err != nil || last > 0 {
		return false, err
	}
	if covered, err := d.snaps.newestIndex(); err != nil || covered > 0 {
		return false, err
	}
	if voted, err := d.guard.GetUint64([]byte("LastVoteTerm")); err != nil || voted > 0 {
		return false, err
	}
	d.guard.isBorn = false
	return true, d.guard.below.Set(key, sealValue(key, make([]byte, 8)))
}

func addressesOf(c raft.Configuration) (list []string) {
	for _, s := range c.Servers {
		list = append(list, string(s.Address))
	}
	return list
}

// mark makes the marker say that this directory is a member's.
func (d *disk) mark(member string, cell uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.marker
	m.Member, m.Cell = member, max(cell, m.Cell)
	return d.replace(m)
}

// live makes the directory older, so that a copy of it is known later on.
func (d *disk) live() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.marker
	m.Life++
	return d.replace(m)
}

// replace writes the marker when it changed. Called with mu held.
func (d *disk) replace(m marker) error {
	if m == d.marker {
		return nil
	}
	for m.Directory == 0 {
		m.Directory, m.Life = rand.Uint64(), max(m.Life, 1)
	}
	if err := writeMarker(d.fs, m); err != nil {
		return err
	}
	d.marker = m
	return nil
}

// life tells which directory this is and how old.
func (d *disk) life() (directory, life uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marker.Directory, d.marker.Life
}

func (d *disk) close() error {
	var err error
	if d.entries != nil {
		err = d.entries.Close()
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
