package inprocess

import (
	"io"
	"testing"

	"strake/client"
)

func TestWhatWasWrittenReadsBackAfterCloseAndReopen(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 64*mib, 4, 2)
	big, small := pattern(1, 9*mib+4096), pattern(2, 10_000)
	write(t, v, big, 0)
	write(t, v, small, 20*mib+123)
	holds(t, v, big, 0)
	flush(t, v)
	holds(t, v, big, 0)
	holds(t, v, small, 20*mib+123)
	holds(t, v, make([]byte, mib), 40*mib)
	closed(t, v)
	v = open(t, cell, "v", writing)
	holds(t, v, big, 0)
	holds(t, v, small, 20*mib+123)
	closed(t, v)
	if err := v.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	_, err := v.ReadAt(small, 0)
	fails(t, "read a closed volume", err, client.ErrClosed)
	_, err = v.WriteAt(small, 0)
	fails(t, "write a closed volume", err, client.ErrClosed)
	fails(t, "flush a closed volume", v.Flush(t.Context()), client.ErrClosed)
}

func TestReadsPastTheEndAreShort(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	_, v := volume(t, c, 1*mib, 1, 1)
	want := pattern(1, 5000)
	write(t, v, want, mib-5000)
	got := make([]byte, 8000)
	if n, err := v.ReadAt(got, mib-5000); n != 5000 || err != io.EOF || firstDifference(got[:5000], want) >= 0 {
		t.Errorf("across the end: %d bytes, %v", n, err)
	}
	if n, err := v.ReadAt(got, mib); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	_, err := v.ReadAt(got, -1)
	fails(t, "before the beginning", err, client.ErrOutOfRange)
	n, err := v.WriteAt(got, mib-5000)
	fails(t, "write across the end", err, client.ErrOutOfRange)
	if n != 0 {
		t.Errorf("wrote %d bytes across the end", n)
	}
	closed(t, v)
}
