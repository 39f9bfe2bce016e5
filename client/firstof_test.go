package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFirstOf(t *testing.T) {
	type way = func(context.Context) (int, error)
	gives := func(n int) way { return func(context.Context) (int, error) { return n, nil } }
	fails := func(text string) way { return func(context.Context) (int, error) { return 0, errors.New(text) } }
	ended := make(chan struct{})
	hangs := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		close(ended)
		return 0, ctx.Err()
	}
	never := func(context.Context) (int, error) {
		t.Error("a way was gone though those before it were not late")
		return 0, nil
	}
	for name, test := range map[string]struct {
		late time.Duration
		ways []way
		want int
		err  string
	}{
		"the first":                       {time.Hour, []way{gives(1), never}, 1, ""},
		"the second, as the first failed": {time.Hour, []way{fails("a"), gives(2), never}, 2, ""},
		"the third, as others hang":       {time.Nanosecond, []way{hangs, gives(3)}, 3, ""},
		"all fail":                        {time.Hour, []way{fails("a"), fails("b")}, 0, "a; b"},
		"all fail at once":                {time.Nanosecond, []way{fails("a"), fails("b"), fails("c")}, 0, "b"},
	} {
		got, err := firstOf(t.Context(), test.late, test.ways)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	<-ended
}
