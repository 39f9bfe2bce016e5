// Package recovery decides what stands and what falls of a log whose writer is
// gone, from the three-valued answers of the shards, and in which order a log
// is replayed. Pure.
package recovery
