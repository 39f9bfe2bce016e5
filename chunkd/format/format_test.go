package format

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

var freeze = flag.Bool("freeze", false, "write the sample files of a new format version")

var testKey = [16]byte{1, 2, 3}

func sampleSuperblock() Superblock {
	return Superblock{Cell: 0xce11, Server: layout.UUID{1, 2}, UUID: layout.UUID{3, 4}, Device: 9, Incarnation: 12, Write: 40, LogKey: testKey}
}

func sampleShard() Shard {
	return Shard{Key: layout.ShardKey{Segment: 77, Shard: 5}, Generation: 3, State: ShardFinalized, Flags: FlagMap | FlagUntrimmed,
		Geometry: layout.Geometry{K: 4, M: 2}, Cell: 0xce11, Volume: 8, Epoch: 2, Fence: 4, Length: 4 << 20, Last: 99,
		Seal: stripe.ShardSeal{Count: 7, Length: 1 << 20, Digest: stripe.Digest{9, 8}}, Stored: 1 << 19}
}

func sampleMark() Mark {
	return Mark{UUID: layout.UUID{3, 4}, Incarnation: 12, Freed: 100, Durable: 140}
}

// sampleUnit is a stripe header and the unit of one shard.
func sampleUnit() (header, unit []byte) {
	unit = bytes.Repeat([]byte("strake! "), 2*layout.BlockSize/8)
	h := stripe.Header{Cell: 0xce11, Volume: 8, Segment: 77, Shard: 4, Geometry: layout.Geometry{K: 4, M: 2}, Epoch: 2, Seq: 99,
		Flushed: 90, Offset: 8192, Shape: layout.Shape{Unit: 8192, Data: 2}, Blocks: 2,
		Ranges: []stripe.Range{{Start: 5, Count: 2, Kind: stripe.Write}}, CRCs: []uint32{1, 2, 0, 0, 5, 6}}
	stripe.AppendBlockCRCs(h.CRCs[:2], unit)
	return h.AppendTo(nil), unit
}

func sampleLogRecord() []byte {
	header, unit := sampleUnit()
	v, err := ParseView(header)
	if err != nil {
		panic(err)
	}
	h := LogHead{LSN: 141, First: 140, Key: v.Key(), Generation: 3, Seq: v.Seq, Offset: v.Offset, Header: uint32(len(header)),
		Payload: v.Unit, HeaderCRC: v.CRC, Incarnation: 12}
	b := make([]byte, h.Len())
	h.Put(b, &testKey)
	copy(b[LogHeadLen:], header)
	copy(b[LogHeadLen+len(header):], unit)
	return b
}

// codecs decode a format and encode it again.
var codecs = []struct {
	name   string
	sample func() []byte
	again  func(b []byte) ([]byte, error)
}{
	{"superblock-v1", func() []byte { s := sampleSuperblock(); return s.AppendTo(nil) }, func(b []byte) ([]byte, error) {
		s, err := DecodeSuperblock(b)
		return s.AppendTo(nil), err
	}},
	{"shard-v1", func() []byte { s := sampleShard(); return s.AppendTo(nil) }, func(b []byte) ([]byte, error) {
		s, err := DecodeShard(b)
		return s.AppendTo(nil), err
	}},
	{"mark-v1", func() []byte { m := sampleMark(); return m.AppendTo(nil) }, func(b []byte) ([]byte, error) {
		m, err := DecodeMark(b)
		return m.AppendTo(nil), err
	}},
	{"tombstone-v1", func() []byte { return AppendTombstone(nil, 6) }, func(b []byte) ([]byte, error) {
		g, err := DecodeTombstone(b)
		return AppendTombstone(nil, g), err
	}},
	{"doubt-v1", func() []byte { return AppendDoubt(nil, 8192) }, func(b []byte) ([]byte, error) {
		u, err := DecodeDoubt(b)
		return AppendDoubt(nil, u), err
	}},
	{"logrecord-v1", sampleLogRecord, againLogRecord},
}

func againLogRecord(b []byte) ([]byte, error) {
	h, ok := DecodeLogHead(b, &testKey)
	if !ok {
		return nil, os.ErrInvalid
	}
	header, payload, err := h.Body(b)
	if err != nil {
		return nil, err
	}
	out := make([]byte, h.Len())
	h.Put(out, &testKey)
	copy(out[LogHeadLen+copy(out[LogHeadLen:], header):], payload)
	return out, nil
}

func TestFrozenSamplesAreReadByTodaysCode(t *testing.T) {
	for _, c := range codecs {
		name := filepath.Join("testdata", c.name+".hex")
		if *freeze {
			if err := os.WriteFile(name, []byte(hex.Dump(c.sample())), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		frozen := readDump(t, name)
		again, err := c.again(frozen)
		if err != nil || !bytes.Equal(again, frozen) {
			t.Errorf("%s: read as something else: %v", c.name, err)
		}
		if !bytes.Equal(c.sample(), frozen) {
			t.Errorf("%s: today's code writes it differently: this needs a new version", c.name)
		}
	}
}

// readDump reads the output of hex.Dump back.
func readDump(t *testing.T, name string) (b []byte) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		digits, _, _ := strings.Cut(line[8:], "|")
		part, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	return b
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	for _, c := range codecs {
		b := c.sample()
		end := len(b)
		if c.name == "logrecord-v1" { // padding is not looked at
			header, unit := sampleUnit()
			end = LogHeadLen + len(header) + len(unit)
		}
		for i := range 8 * end {
			b[i/8] ^= 1 << (i % 8)
			if _, err := c.again(b); err == nil {
				t.Errorf("%s: bit %d of byte %d was flipped and not noticed", c.name, i%8, i/8)
			}
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestDecodersRefuseShorterAndLongerInput(t *testing.T) {
	for _, c := range codecs {
		b := c.sample()
		if _, err := c.again(b[:len(b)-1]); err == nil {
			t.Errorf("%s: one byte short was not noticed", c.name)
		}
		if _, err := c.again(append(b, 0)); err == nil && c.name != "logrecord-v1" {
			t.Errorf("%s: one byte more was not noticed", c.name)
		}
	}
}

func TestSuperblockSurvivesOneBadSlot(t *testing.T) {
	old, now := sampleSuperblock(), sampleSuperblock()
	old.Write--
	old.Incarnation--
	file := make([]byte, SuperblockFileLen)
	for _, c := range []struct {
		a, b Superblock
		want Superblock
	}{{old, now, now}, {now, old, now}, {now, now, now}} {
		copy(file, c.a.AppendTo(nil))
		copy(file[SlotDistance:], c.b.AppendTo(nil))
		if got, err := PickSuperblock(file); err != nil || got != c.want {
			t.Fatalf("got %+v, %v, want the newer", got, err)
		}
		file[70]++ // slot A rots
		if got, err := PickSuperblock(file); err != nil || got != c.b {
			t.Fatalf("got %+v, %v, want slot B", got, err)
		}
		file[SlotDistance+70]++
		if _, err := PickSuperblock(file); err == nil {
			t.Fatal("two bad slots gave a superblock")
		}
	}
}

// What a newer build wrote is refused, never taken for damage: the other slot of a
// superblock is an older life, whose incarnations were given out already.
func TestASuperblockOfAnotherVersionIsNeverPassedOver(t *testing.T) {
	old, next := sampleSuperblock(), sampleSuperblock()
	old.Write--
	newer := next.AppendTo(nil)
	newer[8]++
	sum := crc32.Checksum(newer[:SuperblockLen-4], stripe.Castagnoli)
	binary.LittleEndian.PutUint32(newer[SuperblockLen-4:], sum)
	for _, at := range []int{0, SlotDistance} {
		file := make([]byte, SuperblockFileLen)
		copy(file[SlotDistance-at:], old.AppendTo(nil))
		copy(file[at:], newer)
		if got, err := PickSuperblock(file); errs.KindOf(err) != errs.Version {
			t.Errorf("in the slot at %d: got %+v, %v", at, got, err)
		}
	}
}

func TestRecordsOfAnotherVersionAreRefused(t *testing.T) {
	shard, mark := sampleShard(), sampleMark()
	s, m := shard.AppendTo(nil), mark.AppendTo(nil)
	for name, again := range map[string]func() error{
		"shard": func() error { _, err := DecodeShard(resealed(s)); return err },
		"mark":  func() error { _, err := DecodeMark(resealed(m)); return err },
	} {
		if err := again(); errs.KindOf(err) != errs.Version {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// resealed gives a record of the next version, its checksum in order.
func resealed(b []byte) []byte {
	b = bytes.Clone(b)
	b[0]++
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], stripe.Castagnoli))
	return b
}

func TestAnotherKeyOpensNoLogRecord(t *testing.T) {
	other := [16]byte{9}
	if _, ok := DecodeLogHead(sampleLogRecord(), &other); ok {
		t.Fatal("a record of another device, or a forged one, was taken")
	}
}

func TestKeysSortByShardOffsetAndSeq(t *testing.T) {
	k := layout.ShardKey{Segment: 255, Shard: 3}
	after := layout.ShardKey{Segment: 256, Shard: 0}
	ordered := [][]byte{
		AppendShardKey(nil, KindStripe, k),
		AppendStripeKey(nil, KindStripe, k, 0, 300),
		AppendStripeKey(nil, KindStripe, k, 4096, 1),
		AppendStripeKey(nil, KindStripe, k, 4096, 256),
		AppendStripeKey(nil, KindStripe, k, 1<<20, 2),
		AppendKeysEnd(nil, KindStripe, k),
		AppendStripeKey(nil, KindStripe, after, 0, 1),
	}
	for i := 1; i < len(ordered); i++ {
		if bytes.Compare(ordered[i-1], ordered[i]) >= 0 {
			t.Fatalf("key %d does not sort below key %d", i-1, i)
		}
	}
	gotKey, offset, seq, ok := DecodeStripeKey(ordered[3])
	if !ok || gotKey != k || offset != 4096 || seq != 256 {
		t.Fatalf("got %v %d %d %v", gotKey, offset, seq, ok)
	}
	if got, ok := DecodeShardKey(AppendShardKey(nil, KindShard, k)); !ok || got != k {
		t.Fatalf("got %v %v", got, ok)
	}
	if gotKey, g, ok := ParseShardFileName(ShardFileName(k, 7)); !ok || gotKey != k || g != 7 {
		t.Fatalf("got %v %d %v", gotKey, g, ok)
	}
}

func TestViewAgreesWithTheStripeCodec(t *testing.T) {
	header, unit := sampleUnit()
	h, _, err := stripe.Decode(header)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseView(header)
	if err != nil {
		t.Fatal(err)
	}
	if v.Cell != h.Cell || v.Volume != h.Volume || v.Segment != h.Segment || v.Shard != h.Shard || v.Epoch != h.Epoch ||
		v.Seq != h.Seq || v.Offset != h.Offset || v.Unit != h.Shape.Unit || v.End() != h.End() {
		t.Fatalf("got %+v, want %+v", v, h)
	}
	for i, want := range h.UnitCRCs(h.Shard) {
		if v.BlockCRC(i) != want {
			t.Fatalf("checksum %d is %d, want %d", i, v.BlockCRC(i), want)
		}
	}
	if err := v.Verify(unit); err != nil {
		t.Fatal(err)
	}
	unit[5000] ^= 4
	if v.Verify(unit) == nil {
		t.Fatal("a flipped bit in the unit was not noticed")
	}
}
