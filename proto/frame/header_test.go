package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"strake/internal/errs"
)

var freeze = flag.Bool("freeze", false, "write samples that do not exist yet; existing ones are never changed")

// receive reads the frame at the start of b as either end does: header, lengths,
// then the checksum. what is a Request or a Reply.
func receive(b []byte, isReply bool) (what any, meta []byte, err error) {
	var n int
	if isReply {
		r, e := DecodeReply(b)
		what, n, err = r, r.Meta, e
	} else {
		r, e := DecodeRequest(b)
		what, n, err = r, r.Meta, e
	}
	if err != nil {
		return nil, nil, err
	}
	if len(b) < HeaderLen+n {
		return nil, nil, errs.New(errs.Corrupt, "receive", "truncated")
	}
	meta = b[HeaderLen : HeaderLen+n]
	return what, meta, Verify(b, meta)
}

func TestHeadersComeBackAsTheyWent(t *testing.T) {
	for name, s := range samples() {
		got, meta, err := receive(s.bytes(), s.reply != nil)
		var want any
		if s.request != nil {
			want = *s.request
		} else {
			want = *s.reply
		}
		if err != nil || got != want || !bytes.Equal(meta, s.meta) {
			t.Errorf("%s: got %+v %x (%v), want %+v %x", name, got, meta, err, want, s.meta)
		}
	}
}

func TestFrozenFramesAreReadAndWrittenAlike(t *testing.T) {
	for name, s := range samples() {
		path := filepath.Join("testdata", "v1-"+name+".hex")
		text, err := os.ReadFile(path)
		if *freeze && errors.Is(err, os.ErrNotExist) {
			text = []byte(hex.EncodeToString(s.bytes()) + "\n")
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(string(bytes.TrimSpace(text)))
		if err != nil || !bytes.Equal(b, s.bytes()) {
			t.Errorf("%s: holds %x (%v), today's encoder writes %x", path, b, err, s.bytes())
		}
		if _, _, err := receive(b, s.reply != nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	for name, s := range samples() {
		whole := s.bytes()
		for bit := range 8 * len(whole) {
			b := append(bytes.Clone(whole), bytes.Repeat([]byte{0xa5}, 1<<12)...)
			b[bit/8] ^= 1 << (bit % 8)
			if _, _, err := receive(b, s.reply != nil); err == nil {
				t.Errorf("%s: bit %d flipped and accepted", name, bit)
			}
		}
		for n := range whole {
			if _, _, err := receive(whole[:n], s.reply != nil); err == nil {
				t.Errorf("%s: the first %d of %d bytes were accepted", name, n, len(whole))
			}
		}
		if _, _, err := receive(whole, s.reply == nil); err == nil {
			t.Errorf("%s: taken for the other direction", name)
		}
	}
}

func TestLengthsAreCappedBeforeAnythingElse(t *testing.T) {
	s := samples()["append"]
	s.request.Payload = MaxPayload + 1
	if _, err := DecodeRequest(s.bytes()); !errors.Is(err, errs.TooLarge) {
		t.Errorf("payload over the cap: got %v, want too-large", err)
	}
	s.request.Payload, s.meta = 0, make([]byte, MaxMeta+1)
	if _, err := DecodeRequest(s.bytes()); !errors.Is(err, errs.TooLarge) {
		t.Errorf("meta over the cap: got %v, want too-large", err)
	}
}

func TestTimesAreKeptInWholeMicrosecondsRoundedUp(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		0: 0, -1: 0, 1: time.Microsecond, 1001: 2 * time.Microsecond, time.Second: time.Second,
		2 * time.Hour: (1<<32 - 1) * time.Microsecond, math.MaxInt64: (1<<32 - 1) * time.Microsecond,
	} {
		b := make([]byte, HeaderLen)
		(&Request{Kind: Ping, Deadline: in}).Encode(b, nil)
		if got, err := DecodeRequest(b); err != nil || got.Deadline != want {
			t.Errorf("deadline %v: got %v (%v), want %v", in, got.Deadline, err, want)
		}
	}
}

// FuzzDecodeRequest and FuzzDecodeReply: what is accepted encodes to the same
// fields, and lengths are within their caps.
func FuzzDecodeRequest(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err != nil {
			return
		}
		if r.Meta > MaxMeta || r.Payload > MaxPayload {
			t.Fatalf("lengths %d and %d", r.Meta, r.Payload)
		}
		again, meta := make([]byte, HeaderLen), make([]byte, r.Meta)
		r.Encode(again, meta)
		if got, err := DecodeRequest(again); err != nil || got != r || Verify(again, meta) != nil {
			t.Fatalf("got %+v (%v), want %+v", got, err, r)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReply(b)
		if err != nil {
			return
		}
		again, meta := make([]byte, HeaderLen), make([]byte, r.Meta)
		r.Encode(again, meta)
		if got, err := DecodeReply(again); err != nil || !reflect.DeepEqual(got, r) || Verify(again, meta) != nil {
			t.Fatalf("got %+v (%v), want %+v", got, err, r)
		}
	})
}
