package vfs

// Share is a file system that claims an equal part of the disk below, for devices
// that lie on one disk: together they promise no more than there is.
type Share struct {
	FS
	parts uint64
}

// NewShare gives one of so many equal parts, at least 1, of the disk below.
func NewShare(below FS, parts int) *Share { return &Share{FS: below, parts: uint64(max(parts, 1))} }

// Usage implements FS: the part's share of the disk's size, and of what is free.
func (s *Share) Usage() (Usage, error) {
	u, err := s.FS.Usage()
	return Usage{Total: u.Total / s.parts, Free: u.Free / s.parts}, err
}
