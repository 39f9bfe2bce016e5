package meta

import (
	"context"
	"io"
	"os"
	"time"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/backup"
	"strake/meta/replica"
	"strake/meta/server"
	"strake/meta/state"
	"strake/proto/pb"
)

// Restore makes cfg.Dir, which must be new or empty, the directory of a cell's only
// metadata server, cfg.Advertise, out of a backup. It is refused while a server of
// the cell answers: those that the backup names, and ask, are asked. Without yes it
// only tells what would be forgotten. Errors: Conflict, Corrupt, InvalidArgument.
func Restore(ctx context.Context, cfg Config, file string, ask []string, yes bool) (backup.About, error) {
	const op = "restore the metadata"
	about, snapshot, done, err := openBackup(file)
	if err != nil {
		return about, errs.Wrap(err, op)
	}
	defer done()
	st, err := restored(about, snapshot)
	if err != nil {
		return about, errs.Wrap(err, op)
	}
	if err := notAlive(ctx, cfg, about, append(append([]string{cfg.Advertise}, about.Members...), ask...)); err != nil {
		return about, errs.Wrap(err, op)
	}
	if !yes {
		return about, errs.New(errs.InvalidArgument, op, "all that happened in cell %016x since %s would be forgotten",
			about.Cell, time.Unix(int64(about.AtUnix), 0).UTC().Format(time.DateTime)).
			WithHint("be sure that all its metadata servers are lost for ever, then add --yes")
	}
	fs, err := cfg.open()
	if err != nil {
		return about, errs.Wrap(err, op)
	}
	err = replica.Plant(replica.Options{ID: cfg.Advertise, FS: fs, Machine: server.NewMachine(nil), Logger: cfg.Logger, Timing: cfg.Raft},
		about.Applied+1, st.Snapshot())
	return about, errs.Wrap(err, op)
}

func openBackup(file string) (about backup.About, snapshot io.Reader, done func(), err error) {
	f, err := os.Open(file)
	if err != nil {
		return about, nil, nil, errs.As(err, errs.NotFound, "read the backup")
	}
	info, err := f.Stat()
	if err == nil {
		about, snapshot, err = backup.Open(f, info.Size())
	}
	if err != nil {
		f.Close()
		return about, nil, nil, err
	}
	return about, snapshot, func() { f.Close() }, nil
}

// restored is the state of a backup, with nothing under way in it.
func restored(about backup.About, snapshot io.Reader) (*state.State, error) {
	st, err := state.Restore(snapshot)
	if err != nil {
		return nil, err
	}
	if id := st.View().Cell().ID; id != layout.CellID(about.Cell) || st.View().Applied() != about.Applied {
		return nil, errs.New(errs.Corrupt, "", "it says that it is of cell %016x at entry %d, and holds cell %016x at %d",
			about.Cell, about.Applied, uint64(id), st.View().Applied())
	}
	return st, st.Apply(about.Applied+1, state.RestoreCell{}).Err
}

// notAlive refuses when one of the addresses is a server of the cell.
func notAlive(ctx context.Context, cfg Config, about backup.About, addresses []string) error {
	pool := dial.NewPool(cfg.Policy)
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	said := make(chan error, len(addresses))
	for _, addr := range addresses {
		go func() {
			conn, err := pool.Get(addr)
			if err != nil {
				said <- nil // no address
				return
			}
			p, err := pb.NewMetaClient(conn).Peek(ctx, &pb.PeekRequest{})
			if err == nil && p.GetCell() == about.Cell {
				said <- errs.New(errs.Conflict, "", "the cell lives: a metadata server of it answers at %s", addr).
					WithHint("add servers to it instead: strake meta add ADDRESS")
				return
			}
			said <- nil
		}()
	}
	var first error
	for range addresses {
		if err := <-said; err != nil && first == nil {
			first = err
		}
	}
	return first
}
