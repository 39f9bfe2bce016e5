package e2e

import (
	"net"
	"testing"

	"strake/e2e/cluster"
)

// TestACellIsHealthyOnceServersThatWereStartedAgainServe: the cell says for seconds that
// a server which was killed is up.
func TestACellIsHealthyOnceServersThatWereStartedAgainServe(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 2})
	for _, p := range c.Chunkds {
		check(t, p.Kill())
		check(t, p.Restart())
		check(t, c.WaitHealthy(t.Context()))
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		conn.Close()
	}
}
