// Command strake is the one binary of strake: every daemon and every
// administration verb. See package ctl.
package main

import (
	"os"

	"strake/ctl"
)

func main() { os.Exit(ctl.Main(os.Args[1:], os.Stdout, os.Stderr)) }
