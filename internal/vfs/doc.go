// Package vfs is the seam between strake and its disks.
//
// Every byte that a chunk server or a metadata server keeps goes through FS and
// File. There are several implementations and one shared suite (vfstest) that
// each of them passes: OS (the real file system), Mem (in memory, with power
// cuts that lose or tear what was not synced), and wrappers that inject errors
// (Fault) or give a device another speed (Shape). Package pebblefs runs Pebble
// on any of them.
//
// What is assumed of a disk, and what Mem models: a write that was not synced
// may be lost or kept, whole or torn at 512-byte sectors, in any order against
// other un-synced writes; a directory change that was not followed by SyncDir
// may be lost; a synced write and a synced directory change survive.
//
// What Mem promises of the state after a power cut:
//
//	I1  Bytes, holes and length of the last Sync are there, but for what later
//	    un-synced calls on the same file replaced.
//	I2  A sector holds its bytes as they were at one moment since the last Sync:
//	    a later write to a sector never survives without an earlier one.
//	I3  A file that grew may have its new length without its new bytes, which
//	    then read as zeros.
//	I4  What was written past a lost truncation is lost with it.
//	I5  A rename happened or did not. A file that had a name at every moment
//	    since the last SyncDir has one, unless its directory was lost.
//	I6  A file or directory whose own name was not synced may be gone, with all
//	    that was synced in it.
//	I7  The same calls and the same random source give the same state.
//
// Concurrency: OS leaves order to the kernel; Mem has one mutex; Fault and Shape
// hold theirs only to count and to book, never during a call below or a sleep.
package vfs
