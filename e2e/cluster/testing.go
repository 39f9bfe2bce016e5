package cluster

import "context"

// T is what New needs of a *testing.T.
type T interface {
	Helper()
	Context() context.Context
	TempDir() string
	Cleanup(func())
	Failed() bool
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// New starts a cell for a test. At its end everything is stopped; the ends of all
// logs are shown when the test failed.
func New(t T, opts Options) *Cluster {
	t.Helper()
	opts.Dir = t.TempDir()
	c, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("start a cell: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("the cell's processes: %v", err)
		}
		if t.Failed() {
			for _, p := range c.all() {
				t.Logf("--- %s\n%s", p.Name, p.Tail(40))
			}
		}
	})
	return c
}
