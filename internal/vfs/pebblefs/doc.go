// Package pebblefs lets Pebble run on a vfs.FS, so that its stores see the same
// power cuts, faults and device speeds as all else.
//
// Names given by Pebble are taken below one directory and cannot leave it; a
// leading slash is ignored. What vfs.FS lacks is a no-op that Pebble allows:
// Preallocate and Prefetch do nothing, and every file has the same device id.
// SyncTo starts write-back and promises nothing, as Pebble expects.
package pebblefs
