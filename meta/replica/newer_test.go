package replica

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// newerMeans checks that an error says that a newer program wrote, and that nobody is
// told to empty a directory.
func newerMeans(t *testing.T, what string, err error) {
	t.Helper()
	if errs.KindOf(err) != errs.Version || errs.HintOf(err) != newerHint {
		t.Errorf("%s: kind %v, hint %q: %v", what, errs.KindOf(err), errs.HintOf(err), err)
	}
}

// TestACommandOfANewerProgramEndsAnOlderOneWithTheRightAdvice: also at each later start.
func TestACommandOfANewerProgramEndsAnOlderOneWithTheRightAdvice(t *testing.T) {
	m := newMember(t)
	if err := m.open(); err != nil {
		t.Fatal(err)
	}
	if err := m.Start([]string{m.addr}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it leads", func() bool { return m.Leading() == nil })
	if _, err := m.Propose(t.Context(), []byte(poison)); err == nil {
		t.Error("a command that can't be applied was")
	}
	newerMeans(t, "the command", <-m.fatal)
	m.stop()
	if err := m.open(); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(nil); err != nil {
		newerMeans(t, "the next start", err)
		return
	}
	newerMeans(t, "the next life", <-m.fatal)
}

// TestASnapshotOfANewerProgramIsNotCalledDamaged starts on one that the machine does
// not know.
func TestASnapshotOfANewerProgramIsNotCalledDamaged(t *testing.T) {
	m := newMember(t)
	if err := m.open(); err != nil {
		t.Fatal(err)
	}
	if err := m.Start([]string{m.addr}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it leads", func() bool { return m.Leading() == nil })
	if _, err := m.Propose(t.Context(), []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := m.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	m.stop()
	if err := m.open(); err != nil {
		t.Fatal(err)
	}
	m.list.newer = true
	newerMeans(t, "the start", m.Start(nil))
}

// TestTheFileOfASnapshotHasAVersion: another magic, another version of raft's
// description, a field in it that is not known.
func TestTheFileOfASnapshotHasAVersion(t *testing.T) {
	write := func(magic, meta string) vfs.FS {
		fs := vfs.NewMem(vfs.MemOptions{})
		if err := fs.MkdirAll(snapDir); err != nil {
			t.Fatal(err)
		}
		b := append([]byte(magic), binary.LittleEndian.AppendUint32(nil, uint32(len(meta)))...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Update(crc32.Checksum(b[8:12], castagnoli), castagnoli, []byte(meta)))
		b = append(b, meta...)
		b = binary.LittleEndian.AppendUint32(append(b, "body"...), crc32.Checksum([]byte("body"), castagnoli))
		f, err := fs.Create(snapDir + "/0000000000000001-0000000000000001.snap")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		return fs
	}
	const good = `{"Version":1,"ID":"0000000000000001-0000000000000001","Index":1,"Term":1}`
	for _, c := range []struct {
		name, magic, meta string
		want              errs.Kind
	}{
		{"as it is", snapMagic, good, errs.OK},
		{"another magic", "strksnp2", good, errs.Version},
		{"no magic", "whatever", good, errs.Corrupt},
		{"another version", snapMagic, string(bytes.Replace([]byte(good), []byte(`"Version":1`), []byte(`"Version":2`), 1)), errs.Version},
		{"an unknown field", snapMagic, string(bytes.Replace([]byte(good), []byte(`"Term":1`), []byte(`"Term":1,"Secret":3`), 1)), errs.Version},
		{"no JSON", snapMagic, "{", errs.Version},
	} {
		_, err := openSnapshots(write(c.magic, c.meta), loggerOr(nil))
		if errs.KindOf(err) != c.want {
			t.Errorf("%s: got %v, %v; want %v", c.name, errs.KindOf(err), err, c.want)
		}
		if c.want == errs.Version {
			newerMeans(t, c.name, err)
		}
	}
}

// TestAMemberIsReadyOnceItGoesWithTheOthers: one that starts alone has its snapshot's
// state, and is not.
func TestAMemberIsReadyOnceItGoesWithTheOthers(t *testing.T) {
	members := group(t, 3)
	alone := members[0]
	eventually(t, "all are ready", func() bool {
		for _, m := range members {
			if m.Follows() != nil {
				return false
			}
		}
		return true
	})
	eventually(t, "one leads", func() bool {
		for _, m := range members {
			if m.Leading() == nil {
				m.propose("a")
				return true
			}
		}
		return false
	})
	eventually(t, "it is applied", func() bool { return len(alone.list.all()) == 1 })
	if err := alone.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		m.stop()
	}
	alone.start()
	if got := alone.list.all(); len(got) != 1 || errs.KindOf(alone.Follows()) != errs.Unavailable {
		t.Errorf("alone, with %q: %v", got, alone.Follows())
	}
	members[1].start()
	eventually(t, "it goes with another", func() bool { return alone.Follows() == nil })
}
