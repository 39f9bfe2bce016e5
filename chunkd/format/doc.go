// Package format holds what stands on a device of a chunk server: superblock,
// index keys and records, and log records. It is pure.
package format
