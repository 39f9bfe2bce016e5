// Package smallfile keeps one small value in a file that is replaced as a whole: what
// is read is what was written last, or what was written before that, or an error.
//
//	0        8        12       16
//	| magic  | crc32c | length | body ... |
//
// The CRC covers length and body. The new file is written and synced beside the old
// one and renamed over it, so that a crash leaves one of the two. A file has one
// writer at a time; its owner sees to that. Frozen.
package smallfile
