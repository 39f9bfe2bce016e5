package meta

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// backupOf writes a backup of a cell to a file.
func backupOf(t *testing.T, c *apiClient) string {
	t.Helper()
	var b bytes.Buffer
	err := c.meta.DoWithin(t.Context(), patience, func(ctx context.Context, m pb.MetaClient) error {
		b.Reset()
		parts, err := m.Backup(ctx, &pb.BackupRequest{})
		for err == nil {
			var p *pb.BackupPart
			if p, err = parts.Recv(); err == nil {
				b.Write(p.Data)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestACellIsRestoredFromItsBackup: what the backup holds is there, nobody's ids come
// again, epochs are beyond all that were, and new servers can be added.
func TestACellIsRestoredFromItsBackup(t *testing.T) {
	first, c, _ := chunks(t, 3)
	w := write(c, "kept", 2, 1)
	segments := must(c, pb.MetaClient.AllocateSegments, w.request(2)).Segments
	file := backupOf(t, c)
	lost := must(c, pb.MetaClient.AllocateSegments, w.request(2)).Segments
	write(c, "forgotten", 2, 1)

	a := addresses(t, 2)
	again := newNode(t, a[0], a[0])
	if _, err := Restore(t.Context(), again.cfg, file, nil, true); errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "lives") {
		t.Fatalf("over a live cell: %v", err)
	}
	first.Close()
	if _, err := Restore(t.Context(), again.cfg, file, nil, false); errs.KindOf(err) != errs.InvalidArgument || !strings.Contains(errs.HintOf(err), "--yes") {
		t.Fatalf("without yes: %v", err)
	}
	if _, err := Restore(t.Context(), again.cfg, file, nil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), again.cfg, file, nil, true); errs.KindOf(err) != errs.Conflict {
		t.Fatalf("over a directory in use: %v", err)
	}
	again.start()
	c = api(t, again)
	st := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if st.Volumes != 1 || st.Cell == 0 {
		t.Fatalf("status %v", st)
	}
	view := again.machine.View()
	v, ok := view.VolumeByName("", "kept")
	if !ok || v.Holder != 0 || uint64(v.Epoch) <= w.epoch+1 || v.Closed {
		t.Fatalf("volume %+v", v)
	}
	for _, s := range segments {
		if _, ok := view.Segment(layout.SegmentID(s.Id)); !ok {
			t.Errorf("segment %d is gone", s.Id)
		}
	}
	for _, s := range lost {
		record := view.Cell()
		if !record.Unknown(layout.SegmentID(s.Id)) || view.LastSegment() <= layout.SegmentID(s.Id) {
			t.Errorf("segment %d may be made again", s.Id)
		}
	}
	second := newNode(t, a[1], a[0]).start()
	must(c, pb.MetaClient.AddMember, &pb.AddMemberRequest{Address: a[1]})
	eventually(t, "a second server knows the cell", func() bool { return uint64(second.machine.View().Cell().ID) == st.Cell })
	if err := again.machine.View().Check(); err != nil {
		t.Error(err)
	}
}

func TestNoBackupThatIsDamagedIsRestored(t *testing.T) {
	n := cell(t, 1)[0]
	c := api(t, n)
	must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	file := backupOf(t, c)
	n.Close()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem(vfs.MemOptions{})
	_, err = Restore(t.Context(), Config{Advertise: "127.0.0.1:1", FS: fs}, file, nil, true)
	if errs.KindOf(err) != errs.Corrupt {
		t.Fatalf("got %v", err)
	}
	if names, err := fs.List("."); err != nil || len(names) != 0 {
		t.Errorf("it left %v, %v", names, err)
	}
}
