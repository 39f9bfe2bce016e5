package frame

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

// appender is a body that encodes itself.
type appender interface{ AppendTo([]byte) []byte }

// decoders decode each body and give it back as something that encodes again.
var decoders = map[string]func([]byte) (appender, error){
	"hello":       func(b []byte) (appender, error) { v, err := DecodeHello(b); return &v, err },
	"hello-reply": func(b []byte) (appender, error) { v, err := DecodeHelloReply(b); return &v, err },
	"append":      func(b []byte) (appender, error) { v, err := DecodeAppend(b); return &v, err },
	"read":        func(b []byte) (appender, error) { v, err := DecodeRead(b, nil); return &v, err },
	"sync":        func(b []byte) (appender, error) { v, err := DecodeSync(b); return &v, err },
	"list":        func(b []byte) (appender, error) { v, err := DecodeList(b); return &v, err },
	"list-reply":  func(b []byte) (appender, error) { v, err := DecodeListReply(b); return &v, err },
}

func TestBodiesComeBackAsTheyWent(t *testing.T) {
	for name, want := range map[string]appender{"hello": &hello, "hello-reply": &helloReply, "append": &appendBody,
		"read": &readBody, "sync": &syncBody, "list": &listBody, "list-reply": &listReply} {
		got, err := decoders[name](want.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, want)
		}
	}
}

func TestTruncatedAndPaddedBodiesAreRefused(t *testing.T) {
	for name, body := range map[string]appender{"hello": &hello, "hello-reply": &helloReply, "read": &readBody,
		"sync": &syncBody, "list": &listBody, "list-reply": &listReply} {
		whole := body.AppendTo(nil)
		for n := range whole {
			if _, err := decoders[name](whole[:n]); !errors.Is(err, errs.InvalidArgument) {
				t.Errorf("%s: %d of %d bytes: got %v, want invalid-argument", name, n, len(whole), err)
			}
		}
		if _, err := decoders[name](append(whole, 0)); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("%s: a byte too many: got %v, want invalid-argument", name, err)
		}
	}
}

func TestReadRefusesRangesThatNoShardHas(t *testing.T) {
	for name, ranges := range map[string][]ReadRange{
		"none":                    {},
		"too many":                make([]ReadRange, MaxReadRanges+1),
		"empty":                   {{0, 0}},
		"half a block":            {{0, 2048}},
		"between blocks":          {{512, 4096}},
		"before the start":        {{-4096, 4096}},
		"past the longest shard":  {{layout.MaxShardLength, 4096}},
		"end overflows":           {{1<<63 - 4096, 4096}},
		"more than a frame holds": {{0, MaxPayload}, {0, 4096}},
		"length overflows":        {{0, 1<<32 - 4096}},
	} {
		b := (&ReadBody{shard(1, 1, 1), ranges}).AppendTo(nil)
		if _, err := DecodeRead(b, nil); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("%s: got %v, want invalid-argument", name, err)
		}
	}
}

func TestShardRefRefusesWhatNobodyWrites(t *testing.T) {
	for _, at := range []int{8, 9, 10, 11} {
		b := listBody.AppendTo(nil)
		b[at] = layout.MaxShards
		if _, err := DecodeList(b); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("byte %d: got %v, want invalid-argument", at, err)
		}
	}
}

func TestReadDecodesIntoReusedRanges(t *testing.T) {
	b := readBody.AppendTo(nil)
	ranges := make([]ReadRange, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		body, err := DecodeRead(b, ranges)
		if err != nil || body.Bytes() != 12288 {
			t.Fatal(body, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestErrorsKeepKindMessageAndHint(t *testing.T) {
	got := DecodeError(errs.StaleEpoch, AppendError(nil, refusal))
	if !errors.Is(got, errs.StaleEpoch) || got.Error() != refusal.Error() || errs.HintOf(got) != refusal.Hint {
		t.Errorf("got %v (%s)", got, errs.HintOf(got))
	}
	long := errs.New(errs.Internal, "", "%s", strings.Repeat("x", 1<<20))
	if n := len(AppendError(nil, long)); n > 2+2*2048 {
		t.Errorf("an error text of %d bytes", n)
	}
	for _, b := range [][]byte{nil, {1}, {255, 255, 'x'}} {
		if got := DecodeError(errs.Corrupt, b); !errors.Is(got, errs.Corrupt) {
			t.Errorf("%x: got %v", b, got)
		}
	}
}

// FuzzDecodeBody feeds every body decoder: no panic, nothing allocated beyond a
// small multiple of the input, and what is accepted encodes to the same bytes.
func FuzzDecodeBody(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.meta)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, decode := range decoders {
			v, err := decode(b)
			if err != nil {
				continue
			}
			if got := v.AppendTo(nil); !bytes.Equal(got, b) {
				t.Fatalf("%s: got %x, want %x", name, got, b)
			}
			if s, ok := v.(*SyncBody); ok && cap(s.Shards) > len(b)/shardRefLen {
				t.Fatalf("room for %d shards out of %d bytes", cap(s.Shards), len(b))
			}
		}
		DecodeError(errs.Corrupt, b)
	})
}

// Example_sizes says how long frames are beside their payload.
func Example_sizes() {
	read := func(ranges int) int {
		return HeaderLen + len((&ReadBody{Ranges: make([]ReadRange, ranges)}).AppendTo(nil))
	}
	syncs := func(shards int) int {
		return HeaderLen + len((&SyncBody{Shards: make([]ShardRef, shards)}).AppendTo(nil))
	}
	fmt.Println("header:", HeaderLen)
	fmt.Println("read of one range:", read(1), "of the most ranges:", read(MaxReadRanges))
	fmt.Println("reply to a read of 4 KiB:", HeaderLen+4, "of 1 MiB:", HeaderLen+4*256, "beside its payload")
	fmt.Println("append:", HeaderLen+shardRefLen, "and the stripe header")
	fmt.Println("sync of one shard:", syncs(1), "of the most shards:", syncs(MaxSyncShards))
	fmt.Println("caps of meta and payload:", MaxMeta, MaxPayload)
	// Output:
	// header: 64
	// read of one range: 96 of the most ranges: 12372
	// reply to a read of 4 KiB: 68 of 1 MiB: 1088 beside its payload
	// append: 80 and the stripe header
	// sync of one shard: 100 of the most shards: 16468
	// caps of meta and payload: 164188 16777216
}
