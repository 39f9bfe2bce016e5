package transport

import (
	"net"

	"strake/internal/tls"
)

// NewStreamTCP is a TCP transport that treats its connections as plain streams.
func NewStreamTCP(policy tls.Policy, s Settings) *TCP {
	t := NewTCP(policy, s)
	t.link = func(c net.Conn) link { return &stream{conn: c} }
	return t
}
