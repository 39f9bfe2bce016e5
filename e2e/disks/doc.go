// Package disks keeps the disks of server processes in the process of their test:
// in memory, behind a socket, so that a test can cut their power, fill them, make
// them read-only, hang or rot, which it can't do to a real file system. A SIGKILL
// alone proves nothing about fsync, as the kernel keeps what was not synced.
//
// A Host listens on a Unix socket and has Disks by name, each a vfs.Mem behind a
// vfs.Fault. In the server process, Dial gives a vfs.FS whose every call crosses
// the socket. What holds:
//
//   - A call that was answered has happened, on the disk as it was before the next
//     power cut; one under way at a cut has happened whole, in part or not at all.
//   - A disk has one session, that of the process which opened it last: its locks
//     and files end with the process.
//
// Calls are one request and one reply, in gob; a connection carries one at a time,
// and a session has as many as it has calls under way. All methods are safe for
// concurrent use.
package disks
