package replica

import (
	"time"

	"strake/internal/errs"
)

// Raft is safe only as long as no member forgets what it voted for and what it
// acknowledged. An old copy of a member's directory that is put back has forgotten,
// and looks healthy. So each directory has a number, and a life that grows at each
// start and every lifeEvery while the member runs, durably. The cell records both;
// a member that comes with a life that is on record already, or with a lower one,
// runs on a copy. (A copy that is younger than lifeEvery is not known by this.)

// lifeEvery is how often a member that runs makes its directory older.
const lifeEvery = 20 * time.Second

// Life tells which directory this is, and its life; zeros before it is a member's.
func (r *Replica) Life() (directory, life uint64) { return r.disk.life() }

// age makes the directory older now and then.
func (r *Replica) age() {
	ticker := time.NewTicker(lifeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.closed:
			return
		case <-ticker.C:
		}
		if err := r.disk.live(); err != nil {
			r.disk.guard.fail(errs.Wrap(err, "mark the directory").(*errs.Error).
				WithHint("check the disk of this server's directory, then start it again"))
			return
		}
	}
}

// Copied is the error of a member whose directory is an old copy.
func (r *Replica) Copied(recorded uint64) error {
	_, life := r.Life()
	return errs.New(errs.Corrupt, "join the cell", "the directory is an old copy: the cell saw it at age %d, this is age %d; it has forgotten votes and entries that it acknowledged", recorded, life).
		WithHint("%s", rejoinHint)
}

// Known are the members that the directory listed when it was opened, by address.
func (r *Replica) Known() []string { return r.disk.known }
