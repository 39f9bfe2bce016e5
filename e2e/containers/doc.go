// Package containers tests whole cells in containers: what needs machines with
// addresses and disks of their own. `make e2e` runs it; without -containers, or
// where no engine answers, everything is skipped, and a line says so.
//
// Each test has a seed, from which its choices follow; -seed=N runs them again
// with that one. Figures that the machine's load decides (how long until ready,
// the slowest read) are logged, and judged only with -bars.
package containers
