// Package vfs is the seam between strake and its disks.
//
// Every byte that a chunk server or a metadata server keeps goes through FS and
// File. There are several implementations and one shared suite (vfstest) that
// each of them passes: OS (the real file system), Mem (in memory, with power
// cuts that lose or tear what was not synced), and wrappers that inject errors
// (Fault) or give a device another speed (Shape).
//
// What is assumed of a disk, and what Mem models: a write that was not synced
// may be lost or kept, whole or torn at 512-byte sectors, in any order against
// other un-synced writes; a directory change that was not followed by SyncDir
// may be lost; a synced write and a synced directory change survive.
package vfs
