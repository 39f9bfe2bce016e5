package client

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

func TestWhoWaitsForServersOutOfReach(t *testing.T) {
	for _, test := range []struct {
		f    *fetcher
		want bool
	}{
		{&fetcher{away: true, class: layout.ClassInference}, true},
		{&fetcher{away: true, nowhere: true, class: layout.ClassInference}, false},
		{&fetcher{away: true, class: layout.ClassBackground}, false},
		{&fetcher{broke: true, class: layout.ClassInference}, false},
	} {
		if got := test.f.maySoonGoOn(); got != test.want {
			t.Errorf("away %v, nowhere %v, class %v: %v", test.f.away, test.f.nowhere, test.f.class, got)
		}
	}
}

// A read under way for long may find some shards of its segment gone and others out of
// reach: also a writer looks its map up again then, which names another segment.
func TestWhoLooksTheMapUpAgain(t *testing.T) {
	unavailable, corrupt := errs.New(errs.Unavailable, "", "too few shards"), errs.New(errs.Corrupt, "", "a wrong checksum")
	writer, follower, snapshot := &Volume{w: &writer{}}, &Volume{}, &Volume{frozen: &frozen{}}
	for _, test := range []struct {
		name    string
		v       *Volume
		nowhere bool
		err     error
		want    bool
	}{
		{"a writer, shards gone", writer, true, unavailable, true},
		{"a writer, servers gone", writer, false, unavailable, false},
		{"a writer, damage", writer, true, corrupt, false},
		{"a follower, shards gone", follower, true, unavailable, true},
		{"a follower, damage", follower, false, corrupt, true},
		{"a snapshot, shards gone", snapshot, true, unavailable, false},
		{"a snapshot, damage", snapshot, true, corrupt, false},
		{"no failure", writer, true, nil, false},
	} {
		f := &fetcher{v: test.v, nowhere: test.nowhere}
		if got := f.mayBeOutdated(test.err); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
