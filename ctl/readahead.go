package ctl

import (
	"context"

	"strake/client"
)

// piece is one read under way.
type piece struct {
	buf  []byte
	done chan error
}

// readAhead reads [at, at+n) with several reads under way and hands the pieces
// to f in order.
func readAhead(ctx context.Context, vol *client.Volume, at, n int64, f func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var under []piece
	defer func() {
		cancel()
		for _, p := range under {
			<-p.done
		}
	}()
	var free [][]byte
	for end := at + n; at < end || len(under) > 0; {
		for at < end && len(under) < copyFlights {
			if len(free) == 0 {
				free = append(free, make([]byte, copyChunk))
			}
			p := startRead(ctx, vol, free[0][:min(copyChunk, end-at)], at)
			free = free[1:]
			under, at = append(under, p), at+int64(len(p.buf))
		}
		first := under[0]
		under = under[1:]
		if err := <-first.done; err != nil {
			return err
		}
		if err := f(first.buf); err != nil {
			return err
		}
		free = append(free, first.buf[:cap(first.buf)])
	}
	return nil
}

func startRead(ctx context.Context, vol *client.Volume, buf []byte, off int64) piece {
	p := piece{buf, make(chan error, 1)}
	go func() {
		_, err := vol.ReadAtContext(ctx, p.buf, off)
		p.done <- err
	}()
	return p
}
