package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"strake/client"
)

const (
	flights    = 8  // writes under way
	flushAbout = 20 // operations between flushes, in the mean
)

// Write carries a plan out until ctx ends or an operation fails, and tells w in
// lines what it does: `began N` before operation N, `flushed N` when all up to N
// are durable. It ends without a flush: whoever kills it can do so at any time.
func Write(ctx context.Context, vol *client.Volume, p Plan, w io.Writer) error {
	next := p.Ops()
	pace := rand.New(rand.NewPCG(p.Seed, ^p.First))
	buf := make([]byte, p.Most*BlockSize)
	var under []*client.Completion
	for ctx.Err() == nil {
		op := next()
		time.Sleep(p.Every)
		fmt.Fprintf(w, "began %d\n", op.Number)
		if op.Discard {
			if err := vol.Discard(ctx, int64(op.Block)*BlockSize, int64(op.Count)*BlockSize); err != nil {
				return fmt.Errorf("operation %d: %w", op.Number, err)
			}
		} else {
			under = append(under, vol.WriteAsync(fillOp(buf, p.Volume, op), int64(op.Block)*BlockSize))
		}
		if len(under) > flights {
			if err := under[0].Wait(ctx); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			under = under[1:]
		}
		if pace.IntN(flushAbout) > 0 {
			continue
		}
		for _, u := range under {
			if err := u.Wait(ctx); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
		under = under[:0]
		if err := vol.Flush(ctx); err != nil {
			return fmt.Errorf("flush after operation %d: %w", op.Number, err)
		}
		fmt.Fprintf(w, "flushed %d\n", op.Number)
	}
	return ctx.Err()
}

func fillOp(buf []byte, volume string, op Op) []byte {
	for i := range op.Count {
		Fill(buf[i*BlockSize:(i+1)*BlockSize], volume, Stamp{op.Block + i, op.Number, i})
	}
	return buf[:op.Count*BlockSize]
}

// Progress reads a writer's lines; a last line that was cut off is left out.
func Progress(lines string) (began, flushed uint64) {
	for len(lines) > 0 {
		end := -1
		for i := range lines {
			if lines[i] == '\n' {
				end = i
				break
			}
		}
		if end < 0 {
			break
		}
		var n uint64
		if _, err := fmt.Sscanf(lines[:end], "began %d", &n); err == nil {
			began = n
		} else if _, err := fmt.Sscanf(lines[:end], "flushed %d", &n); err == nil {
			flushed = n
		}
		lines = lines[end+1:]
	}
	return began, flushed
}
