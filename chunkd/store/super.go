package store

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

const (
	superblockFile = "SUPERBLOCK"
	superblockTemp = "SUPERBLOCK.tmp"
	lockFile       = "LOCK"
	reserveFile    = "RESERVE"
	trialFile      = "TRIAL"
	shardDir       = "shards"
	logDir         = "log"
	indexDir       = "index"
)

// Format makes a new device: a superblock with cell, server and device UUID,
// durable. The rest is made by the first Open. It refuses with AlreadyExists a
// directory that holds anything but what a format that was cut short left.
func Format(fsys vfs.FS, id format.Superblock) error {
	if id.Cell == 0 || id.UUID == (layout.UUID{}) {
		return errs.New(errs.InvalidArgument, "format device", "cell and device UUID must be set")
	}
	names, err := fsys.List(".")
	if err != nil {
		return errs.As(err, errs.Unavailable, "format device")
	}
	for _, name := range names {
		if !slices.Contains([]string{"lost+found", superblockTemp, lockFile}, name) {
			return errs.New(errs.AlreadyExists, "format device", "the directory is not empty: it holds %s", name).
				WithHint("name an empty directory, or empty this one if nothing in it is needed")
		}
	}
	id.Incarnation, id.Write = 0, 0
	if id.LogKey == ([16]byte{}) {
		if _, err := rand.Read(id.LogKey[:]); err != nil {
			return errs.As(err, errs.Unavailable, "format device")
		}
	}
	return errs.As(createSuperblock(fsys, id), errs.Unavailable, "format device")
}

func createSuperblock(fsys vfs.FS, sb format.Superblock) error {
	if err := fsys.Remove(superblockTemp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(superblockTemp)
	if err != nil {
		return err
	}
	if err := errors.Join(writeSlots(f, sb), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(superblockTemp, superblockFile); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}

// writeSlots writes and syncs one slot, then the other, so that at any time one
// is whole, and afterwards both say the same: rot of one loses nothing.
func writeSlots(f vfs.File, sb format.Superblock) error {
	sb.Write++
	b := sb.AppendTo(nil)
	for _, off := range [...]int64{0, format.SlotDistance} {
		if _, err := f.WriteAt(b, off); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func writeSuperblock(fsys vfs.FS, sb format.Superblock) error {
	f, err := fsys.Open(superblockFile)
	if err != nil {
		return err
	}
	return errors.Join(writeSlots(f, sb), f.Close())
}

// Inspect reads a device's superblock without opening the store. The error is
// fs.ErrNotExist when the device was not formatted.
func Inspect(fsys vfs.FS) (format.Superblock, error) {
	f, err := fsys.OpenRead(superblockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return format.Superblock{}, errs.As(err, errs.NotFound, "read superblock")
	}
	if err != nil {
		return format.Superblock{}, errs.As(err, errs.Unavailable, "read superblock")
	}
	b := make([]byte, format.SuperblockFileLen)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return format.Superblock{}, errs.As(err, errs.Unavailable, "read superblock")
	}
	return format.PickSuperblock(b[:n])
}

// matches checks what the caller expects; zero fields match all.
func matches(sb, want format.Superblock) error {
	const op = "open device"
	switch {
	case want.Cell != 0 && want.Cell != sb.Cell:
		return errs.New(errs.WrongCell, op, "it belongs to cell %x, not to %x", uint64(sb.Cell), uint64(want.Cell))
	case want.Server != (layout.UUID{}) && want.Server != sb.Server:
		return errs.New(errs.WrongCell, op, "it belongs to server %v, not to %v", sb.Server, want.Server)
	case want.UUID != (layout.UUID{}) && want.UUID != sb.UUID:
		return errs.New(errs.WrongCell, op, "it is device %v, not %v", sb.UUID, want.UUID)
	case want.Device != 0 && sb.Device != 0 && want.Device != sb.Device:
		return errs.New(errs.WrongCell, op, "it is registered as device %d, not %d", sb.Device, want.Device)
	}
	return nil
}
