package vfs_test

import (
	"testing"

	"strake/internal/vfs"
	"strake/internal/vfs/vfstest"
)

func TestMemMeetsContract(t *testing.T) {
	vfstest.Run(t, func(*testing.T) vfs.FS { return vfs.NewMem(vfs.MemOptions{Capacity: 64 << 20}) })
}
