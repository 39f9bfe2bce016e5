package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"time"

	"strake/internal/errs"
	"strake/proto/pb"
)

// Event is something that happened in the cell.
type Event struct {
	ID   uint64    `json:"id"` // grows while one metadata server leads; a new leader begins anew
	At   time.Time `json:"at"`
	Name string    `json:"name"` // server-went-down, shard-replaced and so on
	Text string    `json:"text"`
}

// Events gives up to most events after an id, oldest first; after 0 the newest. The
// leader remembers some thousands of them since it leads.
func (c *Cell) Events(ctx context.Context, after uint64, most int) ([]Event, error) {
	r, err := call(ctx, c, "list events", func(ctx context.Context, m pb.MetaClient) (*pb.ListEventsReply, error) {
		return m.ListEvents(ctx, &pb.ListEventsRequest{After: after, Most: uint32(max(most, 0))})
	})
	if err != nil {
		return nil, err
	}
	var list []Event
	for _, e := range r.Events {
		list = append(list, Event{e.Id, time.UnixMilli(int64(e.AtUnixMs)).UTC(), e.Name, e.Text})
	}
	return list, nil
}

// Finding is one thing that is to be said of a volume.
type Finding struct {
	Bad  bool   `json:"bad"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"` // what to do
}

// BlockedOn is what a volume's writer waits for.
type BlockedOn struct {
	Server  uint64 `json:"server"` // 0: a segment to write to
	Address string `json:"address,omitempty"`
	Ms      uint64 `json:"ms"` // for so long
	Reason  string `json:"reason"`
}

// Explanation is what the metadata service knows of a volume's health.
type Explanation struct {
	Volume   VolumeInfo `json:"volume"`
	Healthy  bool       `json:"healthy"`
	Findings []Finding  `json:"findings"` // the worst first
	Blocked  *BlockedOn `json:"acknowledgement_blocked,omitempty"`
}

// ExplainVolume tells what a volume waits for and why, and what is well.
func (c *Cell) ExplainVolume(ctx context.Context, name string) (Explanation, error) {
	op := "explain volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return Explanation{}, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.ExplainVolumeReply, error) {
		return m.ExplainVolume(ctx, &pb.ExplainVolumeRequest{Tenant: n.Tenant, Name: n.Volume})
	})
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Volume: volumeInfo(r.Volume), Healthy: r.Healthy}
	for _, f := range r.Findings {
		e.Findings = append(e.Findings, Finding{f.Bad, f.Text, f.Hint})
	}
	if b := r.Blocked; b != nil {
		e.Blocked = &BlockedOn{b.Server, b.Address, b.Ms, b.Reason}
	}
	return e, nil
}

// Backup writes a backup of the cell's metadata, whole and of one moment, and gives
// its length in bytes. What was written is checked against the sum that ends it; with
// an error it is no backup. Volumes' data is not in it.
func (c *Cell) Backup(ctx context.Context, to io.Writer) (n int64, err error) {
	defer c.waits.begin("back up the metadata", "the metadata leader sends its state")()
	w := &summed{to: to, sum: sha256.New()}
	err = c.meta.DoWithin(ctx, backupTimeout, func(ctx context.Context, m pb.MetaClient) error {
		if w.n > 0 {
			return errs.New(errs.Conflict, "", "the leader was lost after %d bytes", w.n).WithHint("try again")
		}
		parts, err := m.Backup(ctx, &pb.BackupRequest{})
		if err != nil {
			return err
		}
		for {
			part, err := parts.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := w.write(part.Data); err != nil {
				return errs.As(err, errs.NoSpace, "write the backup")
			}
		}
	})
	if err == nil {
		err = w.end()
	}
	return w.n, errs.Wrap(err, "back up the metadata")
}

// backupTimeout bounds the transfer of a backup.
const backupTimeout = 10 * time.Minute

// summed writes bytes on and checks that the last 32 are the SHA-256 of all others.
type summed struct {
	to   io.Writer
	n    int64
	held []byte // the last bytes, up to 32: perhaps the sum
	sum  hash.Hash
}

func (w *summed) write(p []byte) error {
	if _, err := w.to.Write(p); err != nil {
		return err
	}
	w.n += int64(len(p))
	w.held = append(w.held, p...)
	if over := len(w.held) - sha256.Size; over > 0 {
		w.sum.Write(w.held[:over])
		w.held = append(w.held[:0], w.held[over:]...)
	}
	return nil
}

func (w *summed) end() error {
	if !bytes.Equal(w.held, w.sum.Sum(nil)) {
		return errs.New(errs.Corrupt, "", "what arrived differs from what was sent").WithHint("try again")
	}
	return nil
}
