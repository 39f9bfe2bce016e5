package format

import (
	"bytes"
	"testing"

	"strake/proto/stripe"
)

// fuzzCodec: never panics, and what is accepted encodes to the same bytes.
func fuzzCodec(f *testing.F, name string) {
	for _, c := range codecs {
		if c.name != name {
			continue
		}
		f.Add(c.sample())
		f.Fuzz(func(t *testing.T, b []byte) {
			if again, err := c.again(b); err == nil && !bytes.Equal(again, b[:len(again)]) && name != "logrecord-v1" {
				t.Fatalf("accepted %x, encodes to %x", b, again)
			}
		})
		return
	}
	f.Fatalf("no codec %q", name)
}

func FuzzSuperblock(f *testing.F) { fuzzCodec(f, "superblock-v1") }
func FuzzShard(f *testing.F)      { fuzzCodec(f, "shard-v1") }
func FuzzMark(f *testing.F)       { fuzzCodec(f, "mark-v1") }
func FuzzTombstone(f *testing.F)  { fuzzCodec(f, "tombstone-v1") }
func FuzzDoubt(f *testing.F)      { fuzzCodec(f, "doubt-v1") }
func FuzzLogRecord(f *testing.F)  { fuzzCodec(f, "logrecord-v1") }

func FuzzKeys(f *testing.F) {
	f.Add([]byte("r\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, offset, seq, ok := DecodeStripeKey(b); ok && !bytes.Equal(AppendStripeKey(nil, b[0], k, offset, seq), b) {
			t.Fatalf("key %x does not round-trip", b)
		}
		if k, ok := DecodeShardKey(b); ok && !bytes.Equal(AppendShardKey(nil, b[0], k), b) {
			t.Fatalf("key %x does not round-trip", b)
		}
		if k, g, ok := ParseShardFileName(string(b)); ok && ShardFileName(k, g) != string(b) {
			t.Fatalf("file name %q does not round-trip", b)
		}
	})
}

// FuzzView: whatever stripe.Decode accepts, ParseView reads alike.
func FuzzView(f *testing.F) {
	header, _ := sampleUnit()
	f.Add(header)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, viewErr := ParseView(b)
		h, n, err := stripe.Decode(b)
		if err != nil || n != len(b) {
			return
		}
		if viewErr != nil || v.Seq != h.Seq || v.Offset != h.Offset || v.Unit != h.Shape.Unit {
			t.Fatalf("stripe.Decode gives %+v, ParseView %+v, %v", h, v, viewErr)
		}
		for i, want := range h.UnitCRCs(h.Shard) {
			if v.BlockCRC(i) != want {
				t.Fatalf("checksum %d differs", i)
			}
		}
	})
}
