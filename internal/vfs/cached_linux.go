package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Cached tells whether all of a file's range is in the page cache, so that
// sending it from there would not wait for the device. It is a look, not a
// promise; false where the kernel (before 6.5) can't tell.
func Cached(fd uintptr, off, n int64) bool {
	page := int64(os.Getpagesize())
	var st unix.Cachestat_t
	r := unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
	if n <= 0 || unix.Cachestat(uint(fd), &r, &st, 0) != nil {
		return false
	}
	return int64(st.Cache) >= (off+n+page-1)/page-off/page
}
