package vfs

import "fmt"

// Op is one call on a file system or file, as Fault counts and shows it.
type Op struct {
	N    int64 // number of the call, from 1
	Kind OpKind
	Path string // clean path of the file or directory; with two, the first
}

// String gives `#17 write shards/a`.
func (o Op) String() string { return fmt.Sprintf("#%d %s %s", o.N, o.Kind, o.Path) }

// OpKind is the method called. ReadvAt counts as OpRead, WritevAt as OpWrite.
type OpKind uint8

const (
	OpCreate OpKind = iota
	OpOpen
	OpRemove
	OpRename
	OpLink
	OpMkdir
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpUsage
	OpRead
	OpWrite
	OpSync
	OpWriteback
	OpTruncate
	OpPunch
	OpSize
)

var opNames = [...]string{
	"create", "open", "remove", "rename", "link", "mkdir", "list", "stat", "syncdir", "lock", "usage",
	"read", "write", "sync", "writeback", "truncate", "punch", "size",
}

// String gives the kind's name in lower case.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op-%d", uint8(k))
}

// Mutates tells whether such a call changes the disk or makes a change durable.
func (k OpKind) Mutates() bool {
	switch k {
	case OpOpen, OpList, OpStat, OpUsage, OpRead, OpSize, OpLock, OpWriteback:
		return false
	}
	return true
}
