package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"strake/client/internal/content"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// verifyPiece is how much is read at once, and verifyAhead how many reads are
	// under way.
	verifyPiece = 4 << 20
	verifyAhead = 4
)

// TagReport says that a tag was read whole.
type TagReport struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`  // of the content, as computed from the bytes
	Ready   bool   `json:"ready"`   // the tag had a digest, and it is the same
	SHA256  string `json:"sha256"`  // over all bytes, zeros too
	Bytes   int64  `json:"bytes"`   // its size
	Content int64  `json:"content"` // bytes in blocks that are not zero
}

// DigestTag computes the content digest of a tag and records it.
func (c *Cell) DigestTag(ctx context.Context, id uint64) error {
	v, err := c.openPinned(ctx, &pb.OpenSnapshotRequest{Id: id})
	if err != nil {
		return errs.Wrap(err, "open tag %d", id)
	}
	defer v.Close()
	digest, blocks, err := v.digestOf(ctx)
	if err != nil {
		return errs.Wrap(err, "compute the digest of %s", v.name)
	}
	_, err = call(ctx, c, "record the digest of "+v.name, func(ctx context.Context, m pb.MetaClient) (*pb.MarkTagReadyReply, error) {
		return m.MarkTagReady(ctx, &pb.MarkTagReadyRequest{Snapshot: id, Digest: digest[:], Blocks: blocks})
	})
	return err
}

// DigestTag has the digest of a tag computed, under a session of its own.
func (j *Janitor) DigestTag(ctx context.Context, id layout.SnapshotID) error {
	cell, err := Dial(ctx, j.cfg)
	if err != nil {
		return err
	}
	defer cell.Close()
	return cell.DigestTag(ctx, uint64(id))
}

// VerifyTag reads every byte of a tag, or of a snapshot, and compares it with its
// digest if it has one; read, if not nil, is told how many bytes more were read. Error:
// ErrCorrupt when they differ.
func (c *Cell) VerifyTag(ctx context.Context, name string, read func(n int64)) (TagReport, error) {
	op := "verify " + name
	info, err := c.Snapshot(ctx, name)
	if err != nil {
		return TagReport{}, errs.Wrap(err, "%s", op)
	}
	v, err := c.OpenSnapshot(ctx, name)
	if err != nil {
		return TagReport{}, errs.Wrap(err, "%s", op)
	}
	defer v.Close()
	var digest content.Digest
	sum := sha256.New()
	err = v.inOrder(ctx, func(p []byte, off int64) {
		for i := 0; i < len(p); i += layout.BlockSize {
			digest.Add(layout.BlockNumber((off+int64(i))/layout.BlockSize), stripe.BlockCRC(p[i:][:layout.BlockSize]))
		}
		sum.Write(p)
		if read != nil {
			read(int64(len(p)))
		}
	})
	if err != nil {
		return TagReport{}, errs.Wrap(err, "%s", op)
	}
	got, blocks := digest.Sum()
	r := TagReport{Name: info.Name, Digest: hex.EncodeToString(got[:]), Ready: info.Ready, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Bytes: v.Size(), Content: layout.BlockCount(blocks).Bytes()}
	if info.Ready && info.Digest != r.Digest {
		return r, errs.New(errs.Corrupt, op, "its bytes have the digest %s, and its own is %s", r.Digest, info.Digest).
			WithHint("it does not hold what was tagged: keep the cell as it is, and report this")
	}
	return r, nil
}

// inOrder reads all of a handle and gives it piece by piece, reading ahead.
func (v *Volume) inOrder(ctx context.Context, take func(p []byte, off int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type piece struct {
		p   []byte
		off int64
		err chan error
	}
	var under []piece
	free := make([][]byte, 0, verifyAhead)
	for range verifyAhead {
		free = append(free, make([]byte, verifyPiece))
	}
	var reads crew
	defer reads.close()
	size := v.Size()
	for off := int64(0); off < size || len(under) > 0; {
		if off < size && len(free) > 0 {
			one := piece{free[len(free)-1][:min(verifyPiece, size-off)], off, make(chan error, 1)}
			free = free[:len(free)-1]
			reads.start(func() {
				_, err := v.ReadAtContext(ctx, one.p, one.off)
				if err == io.EOF {
					err = nil
				}
				one.err <- err
			})
			under, off = append(under, one), off+int64(len(one.p))
			continue
		}
		first := under[0]
		if err := <-first.err; err != nil {
			cancel()
			return err
		}
		take(first.p, first.off)
		under, free = under[1:], append(free, first.p[:verifyPiece])
	}
	return nil
}
