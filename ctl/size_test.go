package ctl

import (
	"math"
	"testing"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1B": 1, "10GiB": 10 << 30, "10GB": 10e9, "1.5KiB": 1536, "2TiB": 2 << 40,
		"1kB": 1000, "9223372036854775807": math.MaxInt64, "1EiB": 1 << 60, "7PB": 7e15,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1GIB", "1 GiB", "ten", "NaN", "Inf", "8EiB", "1e3", "0x10", "1_000", "+1", "9223372036854775808"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestSizesPrintAsTheyAreRead(t *testing.T) {
	for _, n := range []int64{0, 1, 4096, 5000, 1 << 20, 64 << 20, 3 << 40, 1 << 60} {
		s := size(n)
		if got, err := parseSize(s.String()); err != nil || got != n {
			t.Errorf("%d prints as %s, which reads as %d, %v", n, s.String(), got, err)
		}
	}
}

func TestSizesForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 30: "10.0 GiB", math.MaxUint64: "16.0 EiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
