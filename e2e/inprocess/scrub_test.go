package inprocess

import (
	"fmt"
	"testing"
	"time"

	"strake/chunkd/format"
	"strake/client"
	"strake/internal/dial"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/pb"
)

// placed finds the chunk server and the file of a segment's shard.
func placed(c *Cell, seg *pb.Segment, shard int) (s *Chunkd, path string) {
	p := seg.Placements[shard]
	for _, s := range c.Chunkds {
		if uint64(s.ID()) == p.Server {
			key := layout.ShardKey{Segment: layout.SegmentID(seg.Id), Shard: layout.ShardIndex(shard)}
			return s, "shards/" + format.ShardFileName(key, layout.Generation(p.Generation))
		}
	}
	return nil, ""
}

// finalized waits until a volume's segments are, and gives them.
func finalized(t *testing.T, c *Cell, name string) (list []*pb.Segment) {
	t.Helper()
	c.Eventually("the segments are finalized", func() error {
		list = segments(t, c, name)
		for _, seg := range list {
			if !seg.Finalized {
				return fmt.Errorf("segment %d is not", seg.Id)
			}
		}
		return nil
	})
	return list
}

// scrubbed begins a cycle on every server and waits for its end.
func scrubbed(t *testing.T, c *Cell, cell *client.Cell, deep bool) (found map[string]bool, parity uint64) {
	t.Helper()
	before := map[uint64]uint64{}
	list, err := cell.Scrub(t.Context(), false, false)
	for _, d := range list {
		before[d.Device] = d.Cycles
	}
	if err == nil {
		_, err = cell.Scrub(t.Context(), true, deep)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually("every device was scrubbed", func() error {
		found, parity = map[string]bool{}, 0
		list, err := cell.Scrub(t.Context(), false, false)
		for _, d := range list {
			if d.Cycles == before[d.Device] || d.Error != "" {
				return fmt.Errorf("device %d was not: %s", d.Device, d.Error)
			}
			for _, f := range d.Findings {
				found[fmt.Sprintf("%d/%d", f.Segment, f.Shard)] = true
			}
			parity += d.ParityCompared
		}
		return err
	})
	return found, parity
}

// TestScrubFindsRotAndItIsRepaired flips bits of a data shard and of a parity shard,
// which nobody reads.
func TestScrubFindsRotAndItIsRepaired(t *testing.T) {
	c := Start(t, Options{Chunkds: 4})
	cell, v := volume(t, c, 16*mib, 2, 2)
	want := pattern(1, 8*mib)
	write(t, v, want, 0)
	closed(t, v)
	seg := finalized(t, c, "v")[0]
	if found, _ := scrubbed(t, c, cell, false); len(found) > 0 {
		t.Fatalf("before any harm: %v", found)
	}
	bad := map[string]bool{}
	for _, shard := range []int{0, 2} {
		s, path := placed(c, seg, shard)
		if err := s.Disk.FlipBit(path, 100, 3); err != nil {
			t.Fatal(err)
		}
		bad[fmt.Sprintf("%d/%d", seg.Id, shard)] = true
	}
	if found, _ := scrubbed(t, c, cell, false); fmt.Sprint(found) != fmt.Sprint(bad) {
		t.Fatalf("found %v, want %v", found, bad)
	}
	c.Eventually("both are repaired", func() error {
		r, err := cell.Rebuild(t.Context())
		if err == nil && (r.RepairedShards != 2 || r.LostShards != 0) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	for _, shard := range []int{0, 2} {
		s, path := placed(c, seg, shard)
		if err := s.Disk.FlipBit(path, 100, 3); err != nil { // were it not repaired, it were right now
			t.Fatal(err)
		}
	}
	scrubbed(t, c, cell, false)
	c.Eventually("what was right again is found bad again, and repaired", func() error {
		r, err := cell.Rebuild(t.Context())
		if err == nil && (r.RepairedShards != 4 || r.LostShards != 0) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	if _, parity := scrubbed(t, c, cell, true); parity < 4*mib {
		t.Errorf("a deep cycle compared %d bytes of parity, want two shards of it for 8 MiB of data", parity)
	}
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, want, 0)
	closed(t, v)
}

// TestAShardThatVanishedIsMissedAndMadeAgain: the metadata service places a shard on
// a server that does not have it, as after a backup older than a move was restored.
// It is one of parity, which no reader asks for.
func TestAShardThatVanishedIsMissedAndMadeAgain(t *testing.T) {
	c := Start(t, Options{Chunkds: 4, SweepEvery: 200 * time.Millisecond})
	cell, v := volume(t, c, 16*mib, 2, 2)
	want := pattern(1, 8*mib)
	write(t, v, want, 0)
	closed(t, v)
	seg := finalized(t, c, "v")[0]
	s, _ := placed(c, seg, 3)
	p := seg.Placements[3]
	pool := dial.NewPool(tls.Policy{})
	defer pool.Close()
	conn, err := pool.Get(s.control.address)
	if err != nil {
		t.Fatal(err)
	}
	gone := &pb.ShardRef{Segment: seg.Id, Shard: 3, Generation: p.Generation, Device: p.Device}
	if r, err := pb.NewChunkClient(conn).DeleteShards(t.Context(), &pb.DeleteShardsRequest{Shards: []*pb.ShardRef{gone}}); err != nil || r.Results[0].Kind != 0 {
		t.Fatal(r, err)
	}
	c.Eventually("it is made again", func() error {
		r, err := cell.Rebuild(t.Context())
		now := segments(t, c, "v")[0].Placements[3]
		if err == nil && (r.RebuiltShards != 1 || r.LostShards != 0 || now.Generation <= p.Generation) {
			err = fmt.Errorf("placed %v: %+v", now, r)
		}
		return err
	})
	if found, _ := scrubbed(t, c, cell, true); len(found) > 0 {
		t.Errorf("a deep scrub found %v", found)
	}
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, want, 0)
	closed(t, v)
}
