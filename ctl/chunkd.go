package ctl

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strake/chunkd"
	"strake/chunkd/janitor"
	"strake/client"
	"strake/internal/errs"
	"strake/internal/tls"
)

// minCapacity is the least that --capacity takes, in bytes.
const minCapacity = 128 << 20

func (a *app) chunkdCommand() *cobra.Command {
	return group("chunkd", "chunk servers' daemon", a.chunkdServe())
}

func (a *app) chunkdServe() *cobra.Command {
	var cfg chunkd.Config
	var insecure bool
	var capacity size
	upkeep := newUpkeepFlags()
	c := &cobra.Command{
		Use: "serve --device DIR", Short: "run a chunk server", Args: exactArgs(0),
		Example: "  strake chunkd serve --device /mnt/nvme0 --device /mnt/nvme1 --cell a:7400,b:7400,c:7400 --domain zone1/rack7/host3\n" +
			"  strake chunkd serve --device /tmp/d0 --emulate-device read=60MiB,write=60MiB,iops=4000,latency=100us",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Cell = a.config.Cell
			cfg.Policy = tls.Policy{Insecure: insecure}
			cfg.Logger, cfg.Version = a.logger(), Version
			if capacity > 0 && capacity < minCapacity {
				return errs.New(errs.InvalidArgument, "serve chunks", "a capacity of %s: logs and reserves alone take that", capacity.String()).
					WithHint("give at least %dMiB", minCapacity>>20)
			}
			if capacity > 0 {
				cfg.FS = limited(uint64(capacity))
			}
			if err := upkeep.into(&cfg.Upkeep); err != nil {
				return err
			}
			recoverer := client.NewJanitor(client.Config{Addresses: cfg.Cell, Logger: cfg.Logger})
			defer recoverer.Close()
			cfg.Recoverer = recoverer
			return chunkd.Run(cmd.Context(), cfg)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&cfg.Devices, "device", nil, "directory of a device; may be given several times")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:7410", "data plane's address")
	f.StringVar(&cfg.Control, "control", "", "control plane's address (default: the data plane's port + 1000)")
	f.StringVar(&cfg.Advertise, "advertise", "", "address that clients reach the data plane by (default: --listen)")
	f.StringVar(&cfg.AdvertiseControl, "advertise-control", "", "address that others reach the control plane by (default: --control)")
	f.StringVar(&cfg.Domain, "domain", "", "failure domain, zone/rack/host (default: the host's name)")
	f.StringVar(&cfg.Emulate, "emulate-device", "", "shape each device: read=60MiB,write=60MiB,iops=4000,latency=100us")
	f.Var(&capacity, "capacity", "most bytes that a device takes (default 0: its whole file system)")
	f.StringVar(&cfg.Metrics, "metrics", "", "serve Prometheus metrics at HOST:PORT/metrics (default: not at all)")
	f.Var((*qosSwitch)(&cfg.FIFO), "qos", "on: by class, reservation, weight and limit; off: in the order of arrival, to compare with")
	f.BoolVar(&cfg.Calibrate, "calibrate", true, "measure each device for a second once the server serves, for `strake reserve`")
	upkeep.add(f)
	f.BoolVar(&insecure, tls.InsecureFlag, false, "listen beyond loopback without any security")
	_ = c.MarkFlagRequired("device")
	return a.profiled(c)
}

// upkeepFlags are the paces of a chunk server's own work.
type upkeepFlags struct {
	rebuildRate, scrubRate size // bytes a second
	scrubCycle             time.Duration
}

func newUpkeepFlags() *upkeepFlags {
	return &upkeepFlags{scrubRate: janitor.DefaultScrubRate, scrubCycle: janitor.DefaultScrubCycle}
}

func (u *upkeepFlags) add(f *pflag.FlagSet) {
	f.Var(&u.rebuildRate, "rebuild-rate", "most bytes a second that rebuilds write here; 0: what the devices have left. Data that can lose no more shard does not wait for it")
	f.Var(&u.scrubRate, "scrub-rate", "most bytes a second that a scrub reads of each device")
	f.DurationVar(&u.scrubCycle, "scrub-cycle", u.scrubCycle, "in which time each device is read once; 0: only by `strake scrub start`")
}

// into hands the flags over. Error: InvalidArgument for what can't be.
func (u *upkeepFlags) into(to *chunkd.Upkeep) error {
	if u.scrubRate == 0 || u.scrubCycle < 0 || u.scrubCycle > 0 && u.scrubCycle < time.Minute {
		return errs.New(errs.InvalidArgument, "serve chunks", "a scrub of %s a second in %v", u.scrubRate.String(), u.scrubCycle).
			WithHint("give --scrub-rate at least 1, and --scrub-cycle at least 1m, or 0 for none")
	}
	to.RebuildRate, to.ScrubRate, to.ScrubCycle = int64(u.rebuildRate), int64(u.scrubRate), u.scrubCycle
	if u.scrubCycle == 0 {
		to.ScrubCycle = -1 // never
	}
	return nil
}

// qosSwitch is the flag --qos=on|off; it is true when that is off.
type qosSwitch bool

func (q *qosSwitch) String() string {
	if *q {
		return "off"
	}
	return "on"
}

func (*qosSwitch) Type() string { return "on|off" }

func (q *qosSwitch) Set(text string) error {
	if text != "on" && text != "off" {
		return usagef("--qos %s: on or off", text)
	}
	*q = text == "off"
	return nil
}
