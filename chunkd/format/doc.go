// Package format is what stands on a device of a chunk server, byte for byte:
// the superblock (superblock.go), the keys and values of the index (key.go,
// shard.go, mark.go) and the records of the append log (logrecord.go).
//
// It is pure: bytes in, values out. Each format starts with a drawing, then
// encode, decode and validate side by side. Numbers are little-endian in values
// and big-endian in keys, so that keys sort. Everything here is frozen within
// its version; a decoder refuses a version that it does not know, and any
// flipped bit. The samples in testdata were written when a version was frozen
// and are read by today's code.
//
// A device's directory:
//
//	SUPERBLOCK        two slots
//	LOCK              held by the process that has the device open
//	RESERVE           zeros, given up when the disk is really full
//	index/            Pebble: shards, stripes, tombstones, doubts, marks
//	log/N             the append log's files, N from 0, of fixed length
//	shards/SSSS-XX-GG one sparse data file per shard (see ShardFileName)
package format
