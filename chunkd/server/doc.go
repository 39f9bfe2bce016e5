// Package server is what clients and the metadata service talk to in a chunk
// server: the data plane (Server, frames over TCP) and the control service
// (Control, gRPC). It owns connections, buffers and the order of replies. It does
// not own devices: stores are handed in, and it never reads or writes a file.
//
// Invariants:
//
//	I1  Each request that was received whole is answered exactly once, or its
//	    connection is closed.
//	I2  No length from a peer is used for memory before it was held against its
//	    cap, which is next to nothing before the peer has said hello.
//	I3  A malformed frame ends its own connection and nothing else.
//	I4  Appends of one connection reach the store in the order of receipt, and
//	    before any later Sync of that connection.
//	I5  Large payloads in memory stay within Limits.Memory over all connections.
//	    Whoever waits for memory keeps none from coming free: a connection writes
//	    its replies before it waits.
//	I6  A quiet connection holds no pooled buffer.
//	I7  Whoever waits for the device's turn, memory or the peer is bounded: by a
//	    queue's length, or by a deadline.
//
// The life of a request. Each connection has one goroutine. It reads as much as
// the socket gives into one buffer, takes requests out of it one after another,
// and serves them on the spot: a 4 KiB read goes from the page cache into the
// batch of replies, right behind its header, without a hop to another goroutine
// and without an allocation. When no whole request is left in the buffer, the
// batch goes out in one write.
//
// What may take long gets a goroutine of its own, at most Limits.ConnRequests for
// a connection: Sync, the wait for durability of an Append, List, reads that
// recover or ask for stripe headers, and all reads while the device is slow
// (device.reads says so) or busy with others. The request is handed over whole and the connection goes
// on with another; the reply is written by that goroutine. Replies of one
// connection are therefore in no order, and conn.writing keeps their bytes apart.
// Appends to a slow (device.writes) or busy device must stay in order: they go through the
// connection's lane, a queue with one goroutine, and so do syncs behind them.
//
// The device's turn. All reads and appends run in a turn that the device's
// scheduler gives by tenant and class (package sched): inline when one is free,
// which is the rule; else aside as above, so that whoever waits holds up nobody. A
// large read takes a turn for each quantum. An append is admitted before its
// payload is read: while its tenant has too much waiting, the connection stops
// reading, and the peer feels it. Syncs take no turn, see syncAside.
//
// Ends. A connection's goroutine ends with the peer, with an error, after
// Limits.Idle of silence, or when Close drains it; it waits for the goroutines it
// started. Close waits for all connections.
//
// Times in replies. Queue runs from the receipt of a request's bytes to its first
// turn at the device; Service is the time in such turns.
package server
