package replica

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
)

const (
	snapSuffix = ".snap"
	snapTemp   = ".tmp"
	snapKeep   = 2 // snapshots kept; the older one may still be on its way to a follower
	snapBuffer = 256 << 10
)

// snapshots keeps raft snapshots as one file each, see snapfile.go. A name is
// the index and term in hexadecimal, so names sort by age.
type snapshots struct {
	fs  vfs.FS
	log *slog.Logger
}

var _ raft.SnapshotStore = (*snapshots)(nil)

// openSnapshots removes unfinished files and checks the newest snapshot.
func openSnapshots(fs vfs.FS, log *slog.Logger) (*snapshots, error) {
	s := &snapshots{fs: fs, log: log}
	names, err := fs.List(snapDir)
	if err != nil {
		return nil, errs.Wrap(err, "list snapshots")
	}
	for _, n := range names {
		if strings.HasSuffix(n, snapTemp) {
			if err := fs.Remove(snapDir + "/" + n); err != nil {
				return nil, errs.Wrap(err, "remove unfinished snapshot")
			}
		}
	}
	list, err := s.List()
	if err != nil {
		return nil, unreadable(err, errs.KindOf(err), "list snapshots")
	}
	if len(list) == 0 {
		return s, nil
	}
	_, body, err := s.Open(list[0].ID)
	if err != nil {
		return nil, unreadable(err, errs.KindOf(err), "check the newest snapshot")
	}
	return s, body.Close()
}

// newestIndex is the last entry that the newest snapshot covers; 0 for none.
func (s *snapshots) newestIndex() (uint64, error) {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Index, nil
}

// newestMembers is newestIndex, with the members of that time.
func (s *snapshots) newestMembers() (index uint64, members []string, err error) {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return 0, nil, err
	}
	return list[0].Index, addressesOf(list[0].Configuration), nil
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, members raft.Configuration,
	membersIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if version != snapMetaVersion {
		return nil, errs.New(errs.Version, "make a snapshot", "raft snapshot version %d is not known", version)
	}
	id := fmt.Sprintf("%016x-%016x", index, term)
	meta := raft.SnapshotMeta{
		Version: version, ID: id, Index: index, Term: term,
		Configuration: members, ConfigurationIndex: membersIndex,
	}
	header, err := encodeSnapHeader(meta)
	if err != nil {
		return nil, err
	}
	temp := snapDir + "/" + id + snapTemp
	if err := s.fs.Remove(temp); err != nil && !missing(err) {
		return nil, errs.Wrap(err, "make snapshot %s", id)
	}
	f, err := s.fs.Create(temp)
	if err != nil {
		return nil, errs.Wrap(err, "make snapshot %s", id)
	}
	k := &sink{store: s, id: id, file: f, out: &writerAt{f: f}}
	k.buffer = bufio.NewWriterSize(k.out, snapBuffer)
	if _, err := k.buffer.Write(header); err != nil {
		k.Cancel()
		return nil, errs.Wrap(err, "make snapshot %s", id)
	}
	return k, nil
}

// List implements raft.SnapshotStore: newest first.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	names, err := s.fs.List(snapDir)
	if err != nil {
		return nil, errs.Wrap(err, "list snapshots")
	}
	slices.Reverse(names)
	var list []*raft.SnapshotMeta
	for _, n := range names {
		id, ok := strings.CutSuffix(n, snapSuffix)
		if !ok {
			continue
		}
		meta, f, err := s.openFile(id)
		if err != nil {
			return nil, err
		}
		f.file.Close()
		list = append(list, meta)
	}
	return list, nil
}

// Open implements raft.SnapshotStore. It checks the whole file before it gives
// the first byte.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, f, err := s.openFile(id)
	if err != nil {
		return nil, nil, err
	}
	if err := f.check(); err != nil {
		f.file.Close()
		return nil, nil, errs.Wrap(err, "read snapshot %s", id)
	}
	body := io.NewSectionReader(f.file, f.body, meta.Size)
	return meta, &snapBody{Reader: bufio.NewReaderSize(body, snapBuffer), file: f.file}, nil
}

func (s *snapshots) openFile(id string) (*raft.SnapshotMeta, *snapFile, error) {
	file, err := s.fs.OpenRead(snapDir + "/" + id + snapSuffix)
	if err != nil {
		return nil, nil, errs.Wrap(err, "read snapshot %s", id)
	}
	f, metaBytes, err := decodeSnapHeader(file)
	var meta raft.SnapshotMeta
	if err == nil {
		err = readSnapMeta(metaBytes, &meta)
	}
	if err != nil {
		file.Close()
		return nil, nil, errs.Wrap(err, "read snapshot %s", id)
	}
	meta.Size = f.bodyLength
	return &meta, f, nil
}

// finish makes a written snapshot count and removes old ones.
func (s *snapshots) finish(id string) error {
	if err := s.fs.Rename(snapDir+"/"+id+snapTemp, snapDir+"/"+id+snapSuffix); err != nil {
		return err
	}
	if err := s.fs.SyncDir(snapDir); err != nil {
		return err
	}
	names, err := s.fs.List(snapDir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, snapSuffix) })
	for _, old := range names[:max(0, len(names)-snapKeep)] {
		if err := s.fs.Remove(snapDir + "/" + old); err != nil {
			s.log.Warn("old snapshot not removed", "err", err)
		}
	}
	return nil
}
