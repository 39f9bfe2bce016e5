package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"strake/client"
)

const (
	// FightBlocks is how many blocks of a volume fighters fight over.
	FightBlocks = 4
	// MaxFighters bounds the fighters of a volume.
	MaxFighters = 16

	turnMost    = 4                      // operations of a turn
	turnTimeout = 20 * time.Second       // of a turn
	restMost    = 800 * time.Millisecond // between turns
)

// Fighter takes a volume from others by force, reads and writes single blocks
// durably, and loses it again. What it does it tells in lines, which package
// history reads; AT is the machine's monotonic clock in nanoseconds, the same for
// all processes and containers of one machine:
//
//	write BLOCK VALUE AT   begins a write
//	read BLOCK AT          begins a read
//	done VALUE AT          ends what was begun last, which else may have taken place or not
//
// A read counts when a durable write after it proves that its reader held the lease
// still: a writer that was deposed may serve old bytes (design §4, P4).
type Fighter struct {
	Cell   *client.Cell
	Volume string    // of at least FightBlocks + MaxFighters blocks
	Number int       // from 0, below MaxFighters
	Out    io.Writer // takes each line in one call

	r *rand.Rand
}

// Fight fights until ctx ends. The error tells of a block that is wrong; what is
// refused, or takes too long, ends a turn.
func (f *Fighter) Fight(ctx context.Context, seed uint64) error {
	f.r = rand.New(rand.NewPCG(seed, uint64(f.Number)))
	for ctx.Err() == nil {
		if err := f.turn(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(f.r.Int64N(int64(restMost)))): // so that some turns are longer than others' rests
		}
	}
	return nil
}

// turn takes the volume and works on some blocks, until it loses it.
func (f *Fighter) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	vol, err := f.Cell.Open(ctx, f.Volume, client.OpenOptions{Write: true, Force: true})
	if err != nil {
		return nil
	}
	defer vol.CloseContext(ctx)
	for range 1 + f.r.IntN(turnMost) {
		block := f.r.Uint64N(FightBlocks)
		if f.r.IntN(2) == 0 {
			if ok, err := f.read(ctx, vol, block); !ok || err != nil {
				return err
			}
			continue
		}
		value := f.value()
		f.say("write %d %d %d", block, value, Now())
		if f.write(ctx, vol, block, value) != nil {
			return nil // it may have taken place
		}
		f.say("done %d %d", value, Now())
	}
	return nil
}

func (f *Fighter) read(ctx context.Context, vol *client.Volume, block uint64) (ok bool, err error) {
	f.say("read %d %d", block, Now())
	b := make([]byte, BlockSize)
	if _, err := vol.ReadAtContext(ctx, b, int64(block)*BlockSize); err != nil {
		return false, nil
	}
	if f.write(ctx, vol, FightBlocks+uint64(f.Number), f.value()) != nil {
		return false, nil
	}
	stamp, err := Read(b, f.Volume, block)
	if err == nil {
		f.say("done %d %d", stamp.Op, Now())
	}
	return err == nil, err
}

// write writes a block and flushes.
func (f *Fighter) write(ctx context.Context, vol *client.Volume, block, value uint64) error {
	b := make([]byte, BlockSize)
	Fill(b, f.Volume, Stamp{Block: block, Op: value})
	if _, err := vol.WriteAtContext(ctx, b, int64(block)*BlockSize); err != nil {
		return err
	}
	return vol.Flush(ctx)
}

// value is one that no other write has, not of another fighter's nor of an earlier
// life of this one.
func (f *Fighter) value() uint64 { return uint64(Now())*MaxFighters + uint64(f.Number) }

func (f *Fighter) say(format string, args ...any) { fmt.Fprintf(f.Out, format+"\n", args...) }

// Now is the machine's monotonic clock in nanoseconds, by which fighters note.
func Now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails for unknown clocks alone
	return t.Nano()
}
