// Package write is the write path of a volume as a pure step machine: which
// stripe is cut when and where, what is acknowledged, what is flushed, and when
// to move on.
package write
