//go:build race

package server

import "syscall"

// The race detector takes a transfer for what orders memory between its two ends,
// since package syscall tells it so. These calls of no bytes tell it the same of
// transfers that do not pass through there.

func sends(fd uintptr) { _, _ = syscall.Write(int(fd), nil) }

func received(fd uintptr) { _, _ = syscall.Read(int(fd), nil) }
