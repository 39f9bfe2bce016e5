// Package logstore keeps a Raft log in files: what was acknowledged is there after a
// power cut, and whatever is read is what was written under that index, or an error.
// It owns the log's files in one directory; the list of them is kept by its owner, see
// Catalogue. It knows nothing of what terms mean or of what an error leads to.
//
// # Format
//
// A file is called after the index of its first entry, in hexadecimal, and is made
// with its full length; what is not written yet is zeros. Version 1, little-endian,
// frozen:
//
//	0        8         16
//	| magic  | first   | records ... zeros |
//
//	0        4        8        12       20      28     29         37     41
//	| length | crc32c | batch  | index  | term  | type | appended | n    | extensions (n) data |
//
// Length counts from index on; a record begins at a multiple of 8. Batch is the offset
// in the file at which the batch begins that the record was written with. The CRC covers
// all of the record but itself.
//
// # Invariants
//
//	L1  A batch is acknowledged after one sync that covers all of it and, in a new
//	    file, the file's name; the next batch is written after that. So a record proves
//	    that everything before its batch was durable.
//	L2  Entries have no gaps, over all files. The catalogue lists the files: a new one
//	    after its first batch is durable and before that is acknowledged, none any more
//	    before it is removed. A file that is not listed holds nothing that counts; one
//	    that is listed and missing, or holds no entry, is a damaged log.
//	L3  At the end of the newest file, what can't be read is the batch that a crash tore:
//	    it was not acknowledged, and is cut off. Unless a later batch proves that it was
//	    durable (L1): then it is rot, as anywhere else, and the log is not opened.
//
// # Concurrency
//
// One goroutine at a time changes the log (the mutex write sees to it); any number read
// meanwhile. After an error of a change the log must not be used any more.
package logstore
