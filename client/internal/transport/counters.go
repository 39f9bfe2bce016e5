package transport

import "sync/atomic"

// Counters tell what a transport did, for benchmarks and metrics.
type Counters struct {
	Calls         uint64 // answered
	BytesSent     uint64 // headers included
	BytesReceived uint64
	Writes        uint64 // system calls, those that found no room included
	Reads         uint64 // system calls, those that found nothing included
	BytesCopied   uint64 // payload that went through a buffer of the transport
}

type counters struct {
	calls, sent, received, writes, reads, copied atomic.Uint64
}

func (c *counters) read() Counters {
	return Counters{
		Calls: c.calls.Load(), BytesSent: c.sent.Load(), BytesReceived: c.received.Load(),
		Writes: c.writes.Load(), Reads: c.reads.Load(), BytesCopied: c.copied.Load(),
	}
}
