package ctl

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strake/internal/errs"
)

const (
	defaultCell   = "127.0.0.1:7400"
	defaultConfig = "/etc/strake/strake.toml"
)

// daemonSections are the tables of the configuration file: the flags of these
// nouns' daemons can stand there, and in variables such as STRAKE_META_DIR.
var daemonSections = []string{"meta", "chunkd", "dev"}

// config is what a flag, a variable or the configuration file decides, in this
// order.
type config struct {
	Cell  string
	Class string

	file string            // the file that was read, empty when there is none
	from map[string]string // setting -> flag, variable, file or "default"
	all  map[string]string // setting -> value
}

// fileValues are a configuration file: the global keys, and one table per daemon.
type fileValues struct {
	Cell   string         `toml:"cell"`
	Class  string         `toml:"class"`
	Meta   map[string]any `toml:"meta"`
	Chunkd map[string]any `toml:"chunkd"`
	Dev    map[string]any `toml:"dev"`
}

func (f fileValues) section(name string) map[string]any {
	return map[string]map[string]any{"meta": f.Meta, "chunkd": f.Chunkd, "dev": f.Dev}[name]
}

// loadConfig reads the configuration for a command, and gives a daemon's flags
// the values that they have not been given on the command line.
func loadConfig(cmd *cobra.Command, getenv func(string) string) (config, error) {
	c := config{from: map[string]string{}, all: map[string]string{}}
	values, err := c.read(cmd.Flags(), getenv)
	if err != nil {
		return c, err
	}
	c.Cell = c.choose(cmd.Flags(), getenv, "cell", values.Cell, defaultCell)
	c.Class = c.choose(cmd.Flags(), getenv, "class", values.Class, "")
	for _, section := range daemonSections {
		daemon := daemonOf(cmd.Root(), section)
		if daemon == nil {
			continue
		}
		if err := c.fill(daemon, section, values.section(section), getenv); err != nil {
			return c, err
		}
	}
	return c, nil
}

// read reads the configuration file. One that was asked for must exist; the
// default one may be missing.
func (c *config) read(flags *pflag.FlagSet, getenv func(string) string) (fileValues, error) {
	path, asked := defaultConfig, false
	if v := getenv("STRAKE_CONFIG"); v != "" {
		path, asked = v, true
	}
	if f := flags.Lookup("config"); f != nil && f.Changed {
		path, asked = f.Value.String(), true
	}
	var values fileValues
	meta, err := toml.DecodeFile(path, &values)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return values, nil
	case errors.Is(err, fs.ErrNotExist):
		return values, errs.As(err, errs.NotFound, "read configuration %s", path).(*errs.Error).
			WithHint("name a file that is there, in --config or STRAKE_CONFIG, or none")
	case err != nil:
		return values, errs.As(err, errs.InvalidArgument, "read configuration %s", path)
	}
	c.file = path
	var unknown []string
	for _, k := range meta.Undecoded() {
		unknown = append(unknown, k.String())
	}
	return values, c.refuse(unknown)
}

// refuse refuses a file with keys that mean nothing: a misspelt one is worse than
// none.
func (c *config) refuse(unknown []string) error {
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return errs.New(errs.InvalidArgument, "read configuration "+c.file, "unknown keys: %s", strings.Join(unknown, ", ")).
		WithHint("the keys are cell, class, and the flags of a daemon in [%s]", strings.Join(daemonSections, "], ["))
}

// choose gives a global setting.
func (c *config) choose(flags *pflag.FlagSet, getenv func(string) string, key, inFile, otherwise string) string {
	value, from := otherwise, "default"
	if inFile != "" {
		value, from = inFile, c.file
	}
	if variable := "STRAKE_" + strings.ToUpper(key); getenv(variable) != "" {
		value, from = getenv(variable), variable
	}
	if f := flags.Lookup(key); f != nil && f.Changed {
		value, from = f.Value.String(), "--"+key
	}
	c.all[key], c.from[key] = value, from
	return value
}

// variableOf is the variable of a daemon's flag.
func variableOf(key string) string {
	return "STRAKE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// fill gives a daemon's flags their values from variables and the file.
func (c *config) fill(daemon *cobra.Command, section string, inFile map[string]any, getenv func(string) string) error {
	var failed error
	known := map[string]bool{}
	daemon.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		known[f.Name] = true
		key, from := section+"."+f.Name, "default"
		variable := variableOf(key)
		switch value, ok := inFile[f.Name]; {
		case f.Changed:
			from = "--" + f.Name
		case getenv(variable) != "":
			from = variable
			failed = errors.Join(failed, set(daemon, f, variable, strings.Split(getenv(variable), ";")))
		case ok:
			from = c.file
			failed = errors.Join(failed, set(daemon, f, c.file+", "+key, texts(value)))
		}
		c.all[key], c.from[key] = f.Value.String(), from
	})
	if failed != nil {
		return failed
	}
	var unknown []string
	for name := range inFile {
		if !known[name] {
			unknown = append(unknown, section+"."+name)
		}
	}
	return c.refuse(unknown)
}

// set gives a flag one or several values.
func set(daemon *cobra.Command, f *pflag.Flag, from string, values []string) error {
	for _, v := range values {
		if err := daemon.Flags().Set(f.Name, v); err != nil {
			return errs.As(err, errs.InvalidArgument, "read configuration from %s", from)
		}
	}
	return nil
}

// texts gives a value of a TOML file as flags take it.
func texts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return []string{fmt.Sprint(value)}
	}
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// daemonOf finds the command that runs a noun's daemon.
func daemonOf(root *cobra.Command, noun string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() != noun {
			continue
		}
		for _, verb := range c.Commands() {
			if verb.Name() == "serve" {
				return verb
			}
		}
		return c
	}
	return nil
}

// lines lists setting, value and where the value came from.
func (c config) lines() [][]string {
	var rows [][]string
	for _, key := range c.keys() {
		rows = append(rows, []string{key, c.all[key], c.from[key]})
	}
	return rows
}

// keys are the settings, the global ones first.
func (c config) keys() []string {
	var keys []string
	for k := range c.all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return strings.Compare(fmt.Sprint(strings.Contains(a, "."), a), fmt.Sprint(strings.Contains(b, "."), b))
	})
	return keys
}
