package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// user is who owns a server's data, as the image says.
const user = 65532

// filler is the file that fills a disk.
const filler = "filler"

// SmallDisk makes a file system of its own in a file below dir, of so many bytes,
// and gives the folder where it is mounted; unmount is for the end.
func SmallDisk(ctx context.Context, dir string, bytes int64) (mounted string, unmount func() error, err error) {
	image, mounted := filepath.Join(dir, "disk"), filepath.Join(dir, "mounted")
	f, err := os.Create(image)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(f.Truncate(bytes), f.Close(), os.MkdirAll(mounted, 0o755)); err != nil {
		return "", nil, err
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, mounted}} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("%v: %w: %s", command, err, out)
		}
	}
	unmount = func() error { return unix.Unmount(mounted, unix.MNT_DETACH) }
	return mounted, unmount, os.Chown(mounted, user, user)
}

// Fill takes all that is free on the disk of a folder.
func Fill(dir string) error {
	f, err := os.Create(filepath.Join(dir, filler))
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := int64(64 << 20); piece >= 4096; {
		end, err := f.Seek(0, 2)
		if err == nil {
			err = unix.Fallocate(int(f.Fd()), 0, end, piece)
		}
		if errors.Is(err, unix.ENOSPC) {
			piece /= 2
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Free gives back what Fill took.
func Free(dir string) error {
	err := os.Remove(filepath.Join(dir, filler))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
