package client

import (
	"strake/client/internal/transport"
	"strake/internal/tls"
)

// TransportCounters tell what the data connections of a cell did.
type TransportCounters = transport.Counters

// Counted gives a configuration whose cells' data connections are counted
// together, and the function that reads the counters.
func Counted(cfg Config) (Config, func() TransportCounters) {
	tcp := transport.NewTCP(tls.Policy{}, transport.Settings{})
	cfg.transport = tcp
	return cfg, tcp.Counters
}
