package vfs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"strake/internal/errs"
)

// DefaultCache is a ShapeSpec's write-back cache when none is given, in bytes.
const DefaultCache = 16 << 20

// ShapeSpec describes an emulated device. Zero means no limit (and no latency),
// except for Cache.
type ShapeSpec struct {
	Read    int64         // bytes per second
	Write   int64         // bytes per second
	IOPS    int64         // requests per second, reads and writes together
	Latency time.Duration // of each request that goes to the device
	Cache   int64         // un-synced bytes that writes may be ahead of the device; 0 means DefaultCache
}

// ParseShape reads `read=60MiB,write=60MiB,iops=4000,latency=100us,cache=16MiB`.
// Every key may be left out; an empty text is a device without limits. Bytes
// take the suffixes B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (of
// 1024). It fails with errs.InvalidArgument, naming the key.
func ParseShape(text string) (ShapeSpec, error) {
	var s ShapeSpec
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(text) == "" {
			break
		}
		key, value, found := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || seen[key] {
			return ShapeSpec{}, badShape(part, "wants key=value, each key once")
		}
		seen[key] = true
		if err := s.set(key, value); err != nil {
			return ShapeSpec{}, err
		}
	}
	return s, nil
}

func (s *ShapeSpec) set(key, value string) (err error) {
	switch key {
	case "read":
		s.Read, err = parseBytes(key, value)
	case "write":
		s.Write, err = parseBytes(key, value)
	case "cache":
		s.Cache, err = parseBytes(key, value)
	case "iops":
		if s.IOPS, err = strconv.ParseInt(value, 10, 64); err != nil || s.IOPS <= 0 {
			return badShape(key+"="+value, "wants a whole number above zero")
		}
	case "latency":
		if s.Latency, err = time.ParseDuration(value); err != nil || s.Latency < 0 {
			return badShape(key+"="+value, "wants a duration such as 100us")
		}
	default:
		return badShape(key, "unknown key")
	}
	return err
}

var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

func parseBytes(key, value string) (int64, error) {
	number, unit := value, 1.0
	for _, u := range byteUnits {
		if rest, found := strings.CutSuffix(value, u.suffix); found {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	n *= unit
	if err != nil || math.IsNaN(n) || n < 1 || n > 1<<60 {
		return 0, badShape(key+"="+value, "wants bytes such as 60MiB, at least 1")
	}
	return int64(n), nil
}

func badShape(what, why string) error {
	return errs.New(errs.InvalidArgument, "device shape "+strconv.Quote(what), "%s", why).
		WithHint("write it like read=60MiB,write=60MiB,iops=4000,latency=100us")
}

// String gives the text that ParseShape reads, without what is not limited.
func (s ShapeSpec) String() string {
	var parts []string
	add := func(key string, value any, given bool) {
		if given {
			parts = append(parts, fmt.Sprintf("%s=%v", key, value))
		}
	}
	add("read", s.Read, s.Read > 0)
	add("write", s.Write, s.Write > 0)
	add("iops", s.IOPS, s.IOPS > 0)
	add("latency", s.Latency, s.Latency > 0)
	add("cache", s.Cache, s.Cache > 0)
	return strings.Join(parts, ",")
}
