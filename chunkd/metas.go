package chunkd

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"

	"strake/internal/vfs"
)

// The addresses of the metadata servers, as etcd told them last, stand in each device's
// directory, so that a chunk server that starts while etcd is away finds its cell. They
// are a hint: a file that is missing, damaged or of another version is passed over, and
// what etcd says counts as soon as it answers.
//
//	strake metadata servers 1
//	HOST:PORT, one a line, 1 to maxMetas
//	CRC32C of all bytes before, 8 hexadecimal digits
const (
	metasFile  = "METAS"
	metasTemp  = "METAS.tmp"
	metasFirst = "strake metadata servers 1\n"
	maxMetas   = 64
	maxMetasAt = 64 << 10 // bytes of the file
)

func encodeMetas(list []string) []byte {
	b := []byte(metasFirst + strings.Join(list, "\n") + "\n")
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// decodeMetas gives the addresses; none for bytes that encodeMetas does not write.
func decodeMetas(b []byte) []string {
	lines := strings.Split(string(b), "\n")
	if len(lines) < 4 || len(lines) > maxMetas+3 {
		return nil
	}
	list := lines[1 : len(lines)-2]
	if string(encodeMetas(list)) != string(b) {
		return nil
	}
	for _, a := range list {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil
		}
	}
	return list
}

// recallMetas lets the first of the devices that remembers the metadata servers say
// where they are.
func (s *Server) recallMetas() {
	for _, d := range s.devices {
		if list := readMetas(d.fs); list != nil {
			s.meta.Remember(list)
			s.metas = list
			return
		}
	}
}

func readMetas(fsys vfs.FS) []string {
	f, err := fsys.OpenRead(metasFile)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size > maxMetasAt {
		return nil
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return decodeMetas(b)
}

// keepMetas writes down where the metadata servers are, when etcd says another thing
// than before. A device that can't be written is another's to tell of.
func (s *Server) keepMetas() {
	list := s.meta.Known()
	if len(list) == 0 || len(list) > maxMetas || slices.Equal(list, s.metas) {
		return
	}
	for _, d := range s.devices {
		if err := writeMetas(d.fs, encodeMetas(list)); err != nil {
			s.log.Warn("metadata servers not noted on the device", "device", d.dir, "err", err)
		}
	}
	s.metas = slices.Clone(list)
}

func writeMetas(fsys vfs.FS, b []byte) error {
	_ = fsys.Remove(metasTemp)
	f, err := fsys.Create(metasTemp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(metasTemp, metasFile); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}
