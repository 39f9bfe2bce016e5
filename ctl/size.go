package ctl

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"strake/internal/errs"
	"strake/internal/layout"
)

var sizeUnits = map[string]float64{
	"": 1, "B": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18,
}

// size is a flag's value in bytes, written as 10GiB, 10GB or plain bytes. It is
// not negative.
type size int64

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	n, err := parseSize(text)
	*s = size(n)
	return err
}

// String implements pflag.Value.
func (s *size) String() string {
	for _, unit := range []string{"EiB", "PiB", "TiB", "GiB", "MiB", "KiB"} {
		if n := int64(sizeUnits[unit]); *s != 0 && int64(*s)%n == 0 {
			return fmt.Sprintf("%d%s", int64(*s)/n, unit)
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type implements pflag.Value.
func (s *size) Type() string { return "size" }

// parseSize reads a size.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRightFunc(s, unicode.IsLetter)
	unit, ok := sizeUnits[s[len(digits):]]
	refused := errs.New(errs.InvalidArgument, "", "size %q", s).WithHint("write 10GiB, 10GB or plain bytes, less than 8EiB")
	if n, err := strconv.ParseUint(digits, 10, 63); ok && err == nil && n <= math.MaxInt64/uint64(unit) {
		return int64(n * uint64(unit)), nil
	}
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || strings.ContainsAny(digits, "eExXpP_+") || n < 0 || math.IsNaN(n) || n*unit >= math.MaxInt64 {
		return 0, refused
	}
	return int64(n * unit), nil
}

// sizeText writes bytes as people read them.
func sizeText(n uint64) string { return layout.SizeText(n) }
