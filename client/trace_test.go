package client

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"strake/internal/errs"
)

// traceSample was written by version 1: a write of a MiB that took 2 ms, a read
// that found a shard corrupt.
const traceSample = "5354524b54524143010000000000000000000000109e1db8" +
	"e8030000000000000700000000000000001000000000000000001000204e0000020300004e7bcc79" +
	"d0070000000000000700000000000000000000000000000000100000d007000001010a00c0af6a3c"

// traceOf writes records under a fixed begin.
func traceOf(records ...TraceRecord) []byte {
	var out bytes.Buffer
	t := NewTrace(&out)
	for _, r := range records {
		var b [traceRecord]byte
		encodeTrace(&b, r)
		t.out.Write(b[:])
	}
	_ = t.Close()
	return out.Bytes()
}

func readTrace(b []byte) (list []TraceRecord, began time.Time, err error) {
	began, err = ReadTrace(bytes.NewReader(b), func(r TraceRecord) error { list = append(list, r); return nil })
	return list, began, err
}

// TestATraceReadsBack, and begins when it was begun.
func TestATraceReadsBack(t *testing.T) {
	before := time.Now()
	want := []TraceRecord{
		{Began: time.Microsecond, Took: 2 * time.Millisecond, Volume: 7, Offset: 4096, Length: 1 << 20, Op: TraceWrite, Class: 3},
		{Began: 2 * time.Microsecond, Took: 200 * time.Microsecond, Volume: 7, Length: 4096, Op: TraceRead, Class: 1, Error: errs.Corrupt},
	}
	got, began, err := readTrace(traceOf(want...))
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("%+v, %v", got, err)
	}
	if began.Before(before.Add(-time.Second)) || began.After(time.Now()) {
		t.Errorf("it began at %v", began)
	}
	long := TraceRecord{Took: time.Hour, Length: 1 << 40, Op: TraceFlush}
	if got, _, err := readTrace(traceOf(long)); err != nil || got[0].Took < 7*time.Minute || got[0].Length != 1<<32-1 {
		t.Errorf("what does not fit: %+v, %v", got, err)
	}
}

func TestAnyFlippedBitOfATraceIsFound(t *testing.T) {
	good := traceOf(TraceRecord{Began: 1, Took: 100, Volume: 2, Offset: 3, Length: 4, Op: TraceRead, Class: 1})
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, err := readTrace(bad); errs.KindOf(err) != errs.Corrupt {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for _, n := range []int{0, 5, traceHeader + 1, len(good) - 1} {
		if _, _, err := readTrace(good[:n]); errs.KindOf(err) != errs.Corrupt {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	if list, _, err := readTrace(good[:traceHeader]); err != nil || len(list) != 0 {
		t.Errorf("an empty trace: %v", err)
	}
}

// TestAWriterThatFailsEndsATraceAndNothingElse.
func TestAWriterThatFailsEndsATraceAndNothingElse(t *testing.T) {
	tr := NewTrace(brokenWriter{})
	for range 2 * traceBuffer / traceRecord {
		tr.note(&Volume{}, TraceRead, 0, 1, tr.now(), io.EOF)
	}
	if err := tr.Close(); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v", err)
	}
	var none *Trace
	none.note(nil, TraceRead, 0, 0, none.now(), nil)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func FuzzReadTrace(f *testing.F) {
	f.Add(traceOf(TraceRecord{Began: 1, Took: 100, Volume: 2, Offset: 3, Length: 4, Op: TraceRead, Class: 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _, err := readTrace(b)
		for i, r := range list {
			var again [traceRecord]byte
			if encodeTrace(&again, r); !bytes.Equal(again[:], b[traceHeader+i*traceRecord:][:traceRecord]) {
				t.Fatalf("record %d does not encode to what it was decoded from (%v)", i, err)
			}
		}
	})
}

func BenchmarkTrace(b *testing.B) {
	tr, v := NewTrace(io.Discard), &Volume{}
	b.ReportAllocs()
	for b.Loop() {
		tr.note(v, TraceRead, 0, 4096, tr.now(), nil)
	}
}

// TestATraceOfVersion1IsReadUnchanged.
func TestATraceOfVersion1IsReadUnchanged(t *testing.T) {
	b, err := hex.DecodeString(traceSample)
	if err != nil {
		t.Fatal(err)
	}
	list, began, err := readTrace(b)
	if err != nil || len(list) != 2 || !began.Equal(time.Unix(0, 0)) || list[0].Length != 1<<20 || list[0].Took != 2*time.Millisecond || list[1].Error != errs.Corrupt {
		t.Errorf("%+v at %v, %v", list, began, err)
	}
}
