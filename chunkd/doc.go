// Package chunkd is the chunk server's process: it puts devices, the data plane
// and the control service together and keeps the metadata service informed.
//
// It owns the order of start and stop, and nothing else: bytes on disk belong to
// package store, connections to package server.
//
// Invariants:
//
//	I1  Nothing is served before every device's store was opened (its incarnation
//	    raised and synced) and the metadata leader has recorded the registration.
//	I2  All devices of a server name one cell and one server UUID; a device of
//	    another cell or server is refused, never formatted.
//	I3  Only an empty directory is formatted.
//	I4  A device of which the metadata leader knows a later incarnation answers
//	    nothing any more: this process runs on a copy, or its disk went elsewhere.
//	I5  A stop answers what was received, then makes everything durable.
//
// Start. Listen (so that addresses are known) → read the superblocks → learn the
// cell's id, from them or from the metadata service → format empty directories →
// open the stores → register → serve. While the metadata service can't be
// reached the start waits, as long as its context lasts.
//
// Concurrency. A Server has these goroutines, all ended by Close, which waits for
// them: the data plane's accept loop, the gRPC server's, the janitor's, one that sends
// heartbeats and registers again when it is told that it is unknown, and one for
// each device that waits for the device's failure to log it. A heartbeat reads
// the stores' accounts and writes nothing.
package chunkd
