package inprocess

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"strake/client"
)

// aheadVolume gives a volume of 16 MiB that is written, by a closed handle, and what
// it holds.
func aheadVolume(t *testing.T) (*client.Cell, []byte) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	want := pattern(3, 16*mib)
	write(t, v, want, 0)
	closed(t, v)
	return cell, want
}

func TestAStreamIsReadAheadAndRandomReadsAreNot(t *testing.T) {
	cell, want := aheadVolume(t)
	const size = 128 << 10
	v := open(t, cell, "v", client.OpenOptions{})
	for at := 0; at < len(want); at += size {
		holds(t, v, want[at:at+size], int64(at))
	}
	s := v.Stats()
	if s.AheadUsed < uint64(len(want))/2 || s.AheadBytes > uint64(len(want)) {
		t.Errorf("of %d bytes, %d were fetched ahead and %d of these read", len(want), s.AheadBytes, s.AheadUsed)
	}
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{})
	random := rand.New(rand.NewPCG(1, 4))
	for range 200 {
		at := random.IntN(len(want)/4096) * 4096
		holds(t, v, want[at:at+4096], int64(at))
	}
	if s := v.Stats(); s.AheadBytes != 0 {
		t.Errorf("%d bytes were fetched ahead of random reads", s.AheadBytes)
	}
	closed(t, v)
}

// TestUnalignedStreamsAreReadAheadToo, with an end that is no whole read.
func TestUnalignedStreamsAreReadAheadToo(t *testing.T) {
	cell, want := aheadVolume(t)
	v := open(t, cell, "v", client.OpenOptions{})
	for at := 0; at < len(want); at += 50_000 {
		holds(t, v, want[at:min(at+50_000, len(want))], int64(at))
	}
	if s := v.Stats(); s.AheadUsed < uint64(len(want))/2 {
		t.Errorf("%d of %d bytes were read ahead", s.AheadUsed, len(want))
	}
	closed(t, v)
}

// TestReadAheadIsNeverStale: the writer reads on in a stream while it writes,
// discards and flushes right before its own reads, in what was fetched already. No
// read gives what was there before.
func TestReadAheadIsNeverStale(t *testing.T) {
	cell, want := aheadVolume(t)
	v := open(t, cell, "v", writing)
	random := rand.New(rand.NewPCG(2, 5))
	const size = 64 << 10
	for at := 0; at < len(want); at += size {
		holds(t, v, want[at:at+size], int64(at))
		to := at + size + random.IntN(8)*size/2
		n := 4096 * (1 + random.IntN(24))
		if to+n > len(want) {
			continue
		}
		switch random.IntN(4) {
		case 0:
			clear(want[to : to+n])
			if err := v.Discard(t.Context(), int64(to), int64(n)); err != nil {
				t.Fatal(err)
			}
		case 1:
			p := pattern(uint64(at+7), n)
			copy(want[to:], p)
			write(t, v, p, int64(to))
			flush(t, v)
		default:
			p := pattern(uint64(at+9), n)
			copy(want[to:], p)
			write(t, v, p, int64(to))
		}
	}
	if s := v.Stats(); s.AheadUsed == 0 {
		t.Error("nothing was read ahead")
	}
	got := make([]byte, len(want))
	if _, err := v.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("at the end: %v, the bytes differ at %d", err, firstDifference(got, want))
	}
	closed(t, v)
}

// TestReadAheadSurvivesLostServers: shards that are lost while a stream is read ahead
// cost it nothing but time.
func TestReadAheadSurvivesLostServers(t *testing.T) {
	c := Start(t, Options{})
	cell, v := volume(t, c, 16*mib, 4, 2)
	want := pattern(3, 16*mib)
	write(t, v, want, 0)
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{})
	const size = 128 << 10
	for at := 0; at < len(want); at += size {
		if at == 4*mib || at == 8*mib {
			c.Chunkds[at/(4*mib)].Kill()
		}
		holds(t, v, want[at:at+size], int64(at))
	}
	if s := v.Stats(); s.AheadUsed < uint64(len(want))/4 || s.DegradedReads == 0 {
		t.Errorf("%d bytes were read ahead, %d reads were degraded", s.AheadUsed, s.DegradedReads)
	}
	closed(t, v)
}
