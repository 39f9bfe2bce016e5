package chunkd

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"strake/chunkd/server"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/internal/vfs"
)

const (
	// controlOffset is how far the control plane's default port lies above the
	// data plane's.
	controlOffset = 1000
	// defaultDrain bounds how long a stop waits for requests under way.
	defaultDrain = 10 * time.Second
	maxDevices   = 64
)

// Config is what a chunk server runs with.
type Config struct {
	Cell             string   // metadata addresses, comma-separated
	Listen           string   // data plane's address
	Control          string   // control plane's; empty: the data plane's host, its port + 1000 (any port for port 0)
	Advertise        string   // address that clients reach the data plane by; empty: the one listened on
	AdvertiseControl string   // the same for the control plane
	Domain           string   // failure domain, zone/rack/host, outermost first; empty: the host's name
	Devices          []string // directories
	Emulate          string   // a vfs.Shape's spec for each device; empty: none
	FIFO             bool     // no quality of service: devices serve in the order of arrival
	Calibrate        bool     // measure what each device can do, within a second, once it serves

	Metrics string // HOST:PORT of the Prometheus endpoint; empty: none

	Policy    tls.Policy
	Recoverer server.Recoverer // nil: RecoverVolume is refused
	Limits    server.Limits
	Upkeep    Upkeep
	Drain     time.Duration // bound of a clean stop; default 10 s
	Version   string        // of the program, for people
	Logger    *slog.Logger  // nil: no log lines

	// FS opens a device's directory; nil: the real file system. Tests put another
	// in its place.
	FS func(dir string) (vfs.FS, error)
}

// Upkeep says how fast shards are made again, checked and cleared away; zero
// fields take janitor's defaults.
type Upkeep struct {
	RebuildRate int64         // ceiling, bytes written a second by this server; 0: none
	ScrubRate   int64         // ceiling, bytes read a second of each device
	ScrubCycle  time.Duration // in which each device is read once; negative: never
	SweepEvery  time.Duration // how often shards that nothing needs are looked for
}

// check fills in defaults and refuses what can't work.
func (c *Config) check() error {
	const op = "start chunk server"
	if len(c.Devices) == 0 || len(c.Devices) > maxDevices {
		return errs.New(errs.InvalidArgument, op, "%d devices, want 1 to %d", len(c.Devices), maxDevices).
			WithHint("give --device DIR for each device")
	}
	seen := map[string]bool{}
	for _, dir := range c.Devices {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return errs.As(err, errs.InvalidArgument, "find device %s", dir)
		}
		if seen[abs] {
			return errs.New(errs.Busy, op, "directory %s is given twice", dir).WithHint("each device has a directory of its own")
		}
		seen[abs] = true
	}
	if c.Control == "" {
		control, err := controlFor(c.Listen)
		if err != nil {
			return err
		}
		c.Control = control
	}
	if c.Domain == "" {
		c.Domain, _ = os.Hostname()
	}
	if c.Drain <= 0 {
		c.Drain = defaultDrain
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.shaped()
}

// shaped makes FS give file systems of the emulated device's speed.
func (c *Config) shaped() error {
	if c.FS == nil {
		c.FS = shared(c.Devices)
	}
	if c.Emulate == "" {
		return nil
	}
	spec, err := vfs.ParseShape(c.Emulate)
	if err != nil {
		return errs.Wrap(err, "emulate device")
	}
	below := c.FS
	c.FS = func(dir string) (vfs.FS, error) {
		fsys, err := below(dir)
		if err != nil {
			return nil, err
		}
		return vfs.NewShape(fsys, spec, vfs.NewPreciseClock()), nil
	}
	return nil
}

// shared opens directories of the real file system; those on one disk share it.
func shared(devices []string) func(dir string) (vfs.FS, error) {
	on := map[uint64]int{} // disk -> devices on it
	for _, dir := range devices {
		if disk, ok := diskOf(dir); ok {
			on[disk]++
		}
	}
	return func(dir string) (vfs.FS, error) {
		below, err := vfs.NewOS(dir)
		if err != nil {
			return nil, err
		}
		if disk, ok := diskOf(dir); ok && on[disk] > 1 {
			return vfs.NewShare(below, on[disk]), nil
		}
		return below, nil
	}
}

// diskOf names the file system that a directory lies on, as the kernel does.
func diskOf(dir string) (disk uint64, ok bool) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Dev), true
}

// controlFor is the control plane's default address.
func controlFor(data string) (string, error) {
	host, text, err := net.SplitHostPort(data)
	if err != nil {
		return "", errs.As(err, errs.InvalidArgument, "data address %q", data)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port+controlOffset > 65535 {
		return "", errs.New(errs.InvalidArgument, "data address "+data, "no default for the control port above port %s", text).
			WithHint("give --control HOST:PORT")
	}
	if port > 0 {
		port += controlOffset
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// advertised is what others dial: what was configured, else where it listens.
func advertised(configured string, l net.Listener) (string, error) {
	if configured != "" {
		return configured, nil
	}
	addr := l.Addr().String()
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return "", errs.New(errs.InvalidArgument, "advertise "+addr, "nobody can dial an unspecified address").
			WithHint("give --advertise and --advertise-control HOST:PORT")
	}
	return addr, nil
}
