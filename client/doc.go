// Package client is strake's client library.
//
// Dial connects to a cell; Open gives a Volume, which is an io.ReaderAt and
// io.WriterAt over the volume's bytes:
//
//	cell, err := client.Dial(ctx, client.Config{Addresses: "127.0.0.1:7400"})
//	vol, err := cell.Open(ctx, "train", client.OpenOptions{Write: true})
//	_, err = vol.WriteAt(p, off)  // acknowledged by every server that takes part
//	err = vol.Flush(ctx)          // durable, and with it every write before it
//
// What it promises (design §4): what a Flush covered reads back while at most m
// shards of a segment are lost; after any crash the volume equals a prefix of its
// write order that holds every flushed write; a read gives the right bytes or an
// error; there is one writer, and an older one is shut out.
//
// Everything here is a shell: sockets, goroutines, locks and the clock. What to
// do is decided by pure cores in client/internal: extent (blocks to places),
// write (the write path), read (request plans, degraded reads) and recovery
// (what stands after a crash).
//
// Concurrency. A Cell and a Volume are safe for concurrent use. A Volume's
// state is guarded by one mutex, under which no I/O is done; frames are sent
// after it is released, and replies take it again. Offsets and lengths are
// bytes; unaligned ones are read, modified and written by the library, under a
// lock on the blocks concerned, so that they are never torn.
//
// Errors are *errs.Error values; test their kind with errors.Is against the
// kinds that this package names (ErrNotFound and so on).
package client
