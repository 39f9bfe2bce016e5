package bench

import (
	"path"
	"strings"

	"strake/internal/errs"
)

// A victim is a load whose latency is looked at, at a rate that leaves its devices
// mostly idle: an open loop, so that it counts what a user would have waited.
func victims() []Case {
	return []Case{
		{Name: "inference-4k-qd1", Block: 4 * kib, Depth: 1, Random: true, Class: "inference", Rate: 250},
		{Name: "inference-64k-qd4", Block: 64 * kib, Depth: 4, Random: true, Class: "inference", Rate: 150},
		{Name: "training-1m-qd8", Block: mib, Depth: 8, Class: "training", Rate: 40},
	}
}

// control is the victim that uses nothing of strake: 4 KiB over bare TCP. What
// happens to it, the machine does, not the cell.
func control() Case { return Case{Name: "tcp-echo", Block: 4 * kib, Depth: 1, Rate: 250} }

// alone is the aggressor that does nothing.
const alone = "none"

// aggressorLoads are aggressors that are clients; each goes as fast as it can.
func aggressorLoads() []Case {
	return []Case{
		{Name: "training-reads", Block: mib, Depth: 8, Class: "training"},
		{Name: "checkpoint-writes", Block: 4 * mib, Depth: 16, Write: true, Class: "checkpoint", Settle: true},
		{Name: "random-writes", Block: 4 * kib, Depth: 32, Write: true, Random: true, Flush: true, Class: "training"},
		{Name: "cleaning", Block: 64 * kib, Depth: 8, Write: true, Random: true, Class: "background", Clean: true},
	}
}

// sharing is an aggressor in the victim's own process and on its connections: what
// checkpoint-writes does. It tells whether classes want connections of their own, and
// is no part of the matrix unless it is named.
const sharing = "own-checkpoint-writes"

// Aggressors that are the cell's own work.
const (
	rebuilding = "rebuild"
	scrubbing  = "scrub"
)

// aggressors gives the names of all, the idle one first.
func aggressors() []string {
	names := []string{alone}
	for _, c := range aggressorLoads() {
		names = append(names, c.Name)
	}
	return append(names, scrubbing, rebuilding)
}

// known are the aggressors that a pattern may name.
func known() []string { return append(aggressors(), sharing) }

// matrix is what is asked for: by aggressor, the victims beside it.
type matrix struct {
	aggressors []string
	victims    map[string][]Case // by aggressor
}

// newMatrix chooses pairs `victim:aggressor` by patterns, comma-separated; empty:
// all but those of sharing. Every victim that is chosen also runs alone, first. Error: InvalidArgument.
func newMatrix(patterns string) (matrix, error) {
	m := matrix{victims: map[string][]Case{}}
	names := known()
	if patterns == "" {
		patterns, names = "*:*", aggressors()
	}
	chosen := map[string]bool{}
	for _, p := range strings.Split(patterns, ",") {
		found := false
		for _, v := range victims() {
			for _, a := range names {
				if ok, err := path.Match(strings.TrimSpace(p), v.Name+":"+a); ok && err == nil {
					found, chosen[v.Name+":"+a], chosen[v.Name+":"+alone] = true, true, true
				}
			}
		}
		if !found {
			return m, errs.New(errs.InvalidArgument, "choose pairs", "no pair matches %q", p).
				WithHint("VICTIM:AGGRESSOR; victims %s; aggressors %s", strings.Join(namesOf(victims()), ", "), strings.Join(known(), ", "))
		}
	}
	for _, a := range known() {
		for _, v := range victims() {
			if chosen[v.Name+":"+a] {
				m.victims[a] = append(m.victims[a], v)
			}
		}
		if len(m.victims[a]) > 0 {
			m.aggressors = append(m.aggressors, a)
		}
	}
	return m, nil
}

func namesOf(cases []Case) (names []string) {
	for _, c := range cases {
		names = append(names, c.Name)
	}
	return names
}

// PairNames lists what a pair can be chosen by.
func PairNames() (victimNames, aggressorNames []string) { return namesOf(victims()), known() }
