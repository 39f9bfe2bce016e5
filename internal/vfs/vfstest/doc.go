// Package vfstest is the shared suite of file systems: one test for each method
// of vfs.FS and vfs.File, and a comparison of random calls with a byte slice.
// An implementation that passes Run may stand wherever strake wants a vfs.FS.
// What a power cut leaves is not in the suite, as a real disk cannot show it.
package vfstest
