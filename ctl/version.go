package ctl

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/client"
	"strake/meta/backup"
	"strake/meta/replica/logstore"
	"strake/meta/state"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// Version is set by the build (-ldflags "-X strake/ctl.Version=...").
var Version = "dev"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: exactArgs(0), Example: "  strake version",
		RunE: func(*cobra.Command, []string) error {
			v := build{Version: Version, Formats: formats()}
			if info, ok := debug.ReadBuildInfo(); ok {
				v.Go = info.GoVersion
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Commit = s.Value
					}
				}
			}
			return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "strake %s %s %s\n", v.Version, v.Commit, v.Go) })
		},
	}
}

// build says what this program is.
type build struct {
	Version string         `json:"version"`
	Go      string         `json:"go"`
	Commit  string         `json:"commit"`
	Formats map[string]int `json:"formats"` // what it writes, and in which version
}

// formats are the versions of all that this program writes. Two builds with the
// same ones read each other's.
func formats() map[string]int {
	return map[string]int{
		"frame": frame.Version, "wire": pb.WireVersion, "stripe-header": stripe.Version, "command": state.Version, "snapshot": state.Version,
		"map-page": client.MapPageVersion, "map-root": client.MapRootVersion, "backup": backup.Version, "raft-log": logstore.Version,
		"index": store.IndexVersion, "superblock": format.SuperblockVersion, "shard-record": format.ShardVersion, "shard-mark": format.MarkVersion, "log-record": format.LogVersion,
	}
}

func (a *app) configCommand() *cobra.Command {
	return group("config", "show and check the configuration", a.configShow(), a.configCheck())
}

// setting is one line of `config show`.
type setting struct {
	Value string `json:"value"`
	From  string `json:"from"` // a flag, a variable, a file, or "default"
}

func (a *app) configShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "show each setting and where it comes from", Args: exactArgs(0), Example: "  strake config show",
		RunE: func(*cobra.Command, []string) error {
			all := map[string]setting{}
			for _, key := range a.config.keys() {
				all[key] = setting{a.config.all[key], a.config.from[key]}
			}
			return a.print(map[string]any{"file": a.config.file, "settings": all},
				func(w io.Writer) { table(w, []string{"SETTING", "VALUE", "FROM"}, a.config.lines()) })
		},
	}
}

func (a *app) configCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "check the configuration file", Args: exactArgs(0), Example: "  strake config check --config strake.toml",
		RunE: func(*cobra.Command, []string) error {
			// prepare has read it: an error would have ended the command before.
			return a.print(map[string]any{"file": a.config.file, "ok": true}, func(w io.Writer) {
				if a.config.file == "" {
					fmt.Fprintln(w, "no configuration file; defaults hold")
					return
				}
				fmt.Fprintf(w, "%s is fine\n", a.config.file)
			})
		},
	}
}
