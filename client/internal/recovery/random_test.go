package recovery_test

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"testing"

	"strake/client/internal/recovery"
	"strake/internal/errs"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed alone, and print its history")
	walksFlag = flag.Uint64("walks", 20000, "random walks")
)

const stepsOfWalk = 220

// decideTwice holds Decide against the reference.
func decideTwice(in recovery.Input) (recovery.Plan, error) {
	got, err := recovery.Decide(in)
	want, wantErr := reference("")(in)
	switch {
	case (err == nil) != (wantErr == nil) && errs.KindOf(err) != errs.Corrupt:
		return got, errors.Join(errDiffers, fmt.Errorf("Decide says %v, the reference %v", err, wantErr))
	case err == nil && (!reflect.DeepEqual(got, want)):
		return got, errors.Join(errDiffers, fmt.Errorf("Decide says %+v, the reference %+v", got, want))
	}
	return got, err
}

var errDiffers = errors.New("the decision and the reference differ")

func walk(seed uint64, decide decider, log func(string, ...any)) (*world, error) {
	w := newWorld(seed, decide)
	if log != nil {
		w.log = log
	}
	return w, w.run(stepsOfWalk)
}

func TestWalksKeepThePromises(t *testing.T) {
	first, last := uint64(1), *walksFlag
	if testing.Short() {
		last /= 10
	}
	var log func(string, ...any)
	if *seedFlag != 0 {
		first, last, log = *seedFlag, *seedFlag, t.Logf
	}
	closed := 0
	for seed := first; seed <= last; seed++ {
		w, err := walk(seed, decideTwice, log)
		if err != nil {
			t.Fatalf("seed %d: %v\nagain: go test ./client/internal/recovery -run WalksKeep -seed=%d -v", seed, err, seed)
		}
		closed += w.closed
	}
	t.Logf("%d walks, %d recoveries", last-first+1, closed)
}

func TestEachRuleOffGivesACounterexample(t *testing.T) {
	// A rule that takes long to miss begins near a seed that does.
	first := map[string]uint64{"unseen": 189_500}
	for _, rule := range []string{"gapcut", "joint", "kfenced", "prefix", "never", "whole", "unseen", "decided"} {
		t.Run(rule, func(t *testing.T) {
			for seed := first[rule] + 1; seed <= first[rule]+40000; seed++ {
				if _, err := walk(seed, reference(rule), nil); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Fatalf("nothing found with the rule %q off: the walks are too tame", rule)
		})
	}
}
