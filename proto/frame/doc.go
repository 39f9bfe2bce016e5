// Package frame is the codec of the data plane: what clients and chunk servers
// say to each other over a byte stream.
//
// A connection carries frames both ways. Requests are numbered by the client
// and answered in any order; each is answered exactly once. A frame is a fixed
// header, `meta` (the fields of its kind, see body.go) and payload (user bytes
// or stripe headers). Version 1, little-endian, frozen:
//
//	 0  2  magic 0x5354 "TS"
//	 2  1  version (1)
//	 3  1  kind; bit 7 set in replies
//	 4  4  length of meta, at most MaxMeta
//	 8  4  length of payload, at most MaxPayload
//	12  1  class        13  1  flags        14  2  status (an errs.Kind; replies only)
//	16  8  request id
//	       in requests                       in replies
//	24  8  epoch of the writer, else 0       incarnation of the device
//	32  8  acked: the writer's acked seq     queue µs (4), service µs (4)
//	40  8  flushed: its flushed seq          generation of the shard (4), load (4)
//	48  4  tenant                            zero
//	52  4  token handle                      zero
//	56  4  deadline, µs from receipt; 0: none   zero
//	60  4  CRC32C of the 60 bytes before and of meta
//
// The payload has no checksum here: blocks are checked by the CRCs in their
// stripe headers, stripe headers by their own.
//
// A receiver that finds a bad magic, version, length or checksum closes the
// connection: after such an error nothing on it can be trusted. Lengths are
// checked before anything is allocated.
package frame
