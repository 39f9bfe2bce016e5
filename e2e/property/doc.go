// Package property does random things to a volume and compares it, its snapshots and
// its clones with arrays of bytes: writes, discards, flushes, snapshots, clones,
// rollbacks, removals, new sizes, reopening, crashes and cleaning. Any part of a
// history can be carried out by itself, so one that fails is shrunk to a short one.
// It knows no cell: tests bring one, in their process or of processes.
package property
