package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/client"
)

// devTest starts a cell in this process and gives its address.
func devTest(t *testing.T, chunkds int) string {
	t.Helper()
	t.Setenv("STRAKE_CONFIG", "")
	o := devOptions{dir: t.TempDir(), chunkds: chunkds, listen: "127.0.0.1:0"}
	cell, err := startDev(t.Context(), o, slog.New(slog.DiscardHandler), t.Logf)
	must(t, err)
	t.Cleanup(func() {
		if err := cell.stop(); err != nil {
			t.Error(err)
		}
	})
	return cell.address
}

// TestRefusals runs command lines that are well formed and must be refused. Each
// says what was refused and what to do.
func TestRefusals(t *testing.T) {
	cell := devTest(t, 2)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, make([]byte, 64<<10), 0o644))
	if out, bad, code := run("volume", "create", "taken", "--size", "1MiB", "--cell", cell); code != 0 || !strings.Contains(out, "strake volume import taken") {
		t.Fatalf("exit %d, %s%s", code, out, bad)
	}
	long := strings.Repeat("x", 64)
	refusedAll(t, cell, []refusal{
		{"volume create --size 1GiB ''", "invalid-argument", "volume name is empty"},
		{"volume create --size 1GiB " + long, "invalid-argument", "64 characters, at most 63"},
		{"volume create --size 1GiB t/" + long, "invalid-argument", "64 characters, at most 63"},
		{"volume create --size 1GiB a/b/c", "invalid-argument", "more than one slash"},
		{"volume create --size 1GiB /a", "invalid-argument", "tenant name is empty"},
		{"volume create --size 1GiB a/", "invalid-argument", "volume name is empty"},
		{"volume create --size 1GiB käse", "invalid-argument", "'ä' at position 2"},
		{"volume create --size 1GiB " + strings.Repeat("ä", 32), "invalid-argument", "'ä' at position 1"},
		{"volume create --size 1GiB " + strings.Repeat("a", 40) + strings.Repeat("ü", 24), "invalid-argument", "64 characters, at most 63"},
		{"volume create --size 1GiB Upper", "invalid-argument", "'U' at position 1"},
		{"volume create --size 1GiB -- -x", "invalid-argument", "'-' at position 1"},
		{"volume create --size 1GiB v@snap", "invalid-argument", "names a snapshot"},
		{"volume create v --size 0", "invalid-argument", "at least 4 KiB"},
		{"volume create v --size 5000", "invalid-argument", "--size 8KiB"},
		{"volume create v --size 2EiB", "invalid-argument", "at most 1 EiB"},
		{"volume create v --size 1023PiB", "no-space", "1023.0 PiB are beyond the cell"},
		{"volume create v --size 1GiB --k 17 --m 2", "invalid-argument", "k is 1 to 16"},
		{"volume create v --size 1GiB --k 4 --m 5", "invalid-argument", "m is 1 to 4"},
		{"volume create v --size 1GiB --k 0 --m 1", "invalid-argument", "1+1"},
		{"volume create v --size 1GiB --k 1 --m 0", "invalid-argument", "--k 1 --m 1"},
		{"volume create v --size 1GiB --m 0", "invalid-argument", "smallest geometry is 1+1"},
		{"volume create v --size 1GiB --k 0 --m 0", "invalid-argument", "smallest geometry is 1+1"},
		{"volume create v --size 1GiB --k -1 --m -1", "invalid-argument", "k is 1 to 16"},
		{"volume create v --size 1GiB --k 4 --m 2", "invalid-argument", "needs 6 servers, the cell has 2"},
		{"volume create v --size 1GiB --class fast", "invalid-argument", "inference, training"},
		{"volume create taken --size 1GiB", "already-exists", "another name"},
		{"volume show nope", "not-found", "nope"},
		{"volume rm nope --yes", "not-found", "nope"},
		{"volume rm taken", "invalid-argument", "--yes"},
		{"volume resize taken --size 512KiB", "invalid-argument", "--yes"},
		{"volume resize taken --size 5000", "invalid-argument", "multiple of 4 KiB"},
		{"volume undelete taken", "not-found", "taken"},
		{"volume import nope " + file, "not-found", "nope"},
		{"volume import taken /nowhere/file", "not-found", "/nowhere/file"},
		{"volume import taken " + file + " --offset 1000KiB", "out-of-range", "strake volume resize taken"},
		{"volume export taken - --bytes 2MiB", "out-of-range", "past the volume's end"},
		{"volume export taken - --offset 2MiB", "out-of-range", ": 0 bytes at 2097152 are past the volume's end"},
		{"volume export taken " + file, "already-exists", "--force"},
		{"volume export taken " + dir, "invalid-argument", "a file"},
		{"volume export taken /nowhere/file", "not-found", "/nowhere"},
		{"status --config /nowhere/strake.toml", "not-found", "/nowhere/strake.toml"},
		{"dev --listen " + cell, "busy", "another address"},
		{"status --cell nowhere", "invalid-argument", "no HOST:PORT"},
		{"meta rm 127.0.0.1:1", "not-found", "127.0.0.1:1"},
	})
}

// refusal is what a command line is refused with.
type refusal struct {
	args string // without --cell
	kind string
	want string // in message or hint
}

func refusedAll(t *testing.T, cell string, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		args := strings.Fields(c.args)
		for i, arg := range args {
			args[i] = strings.Trim(arg, "'")
		}
		out, bad, code := run(append([]string{"--cell", cell, "-o", "json"}, args...)...)
		var f failure
		if err := json.Unmarshal([]byte(bad), &f); err != nil || code != exitFailed || out != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.args, code, out, bad)
			continue
		}
		if f.Error.Kind != c.kind || !strings.Contains(f.Error.Message+" "+f.Error.Hint, c.want) {
			t.Errorf("%s: got %+v, want %s and %q", c.args, f.Error, c.kind, c.want)
		}
		if f.Error.Hint == "" && !strings.Contains(f.Error.Message, " want ") {
			t.Errorf("%s: %q does not say what to do", c.args, f.Error.Message)
		}
	}
}

// TestRefusalsOfClassesAndReservations: figures that can't be meant, names that are
// not there, what the cell can't keep.
func TestRefusalsOfClassesAndReservations(t *testing.T) {
	refusedAll(t, devTest(t, 2), []refusal{
		{"class show nobody", "not-found", "inference, training"},
		{"class set nobody --weight 3", "not-found", "nobody"},
		{"class set inference --weight -4", "invalid-argument", "weight -4"},
		{"class set inference --weight 10001", "invalid-argument", "1 to 10000"},
		{"class set training --limit 1MiB --reserve 2MiB", "invalid-argument", "below the reservation"},
		{"class set training --limit-iops -1", "invalid-argument", "less than nothing"},
		{"class set training --limit 1", "invalid-argument", "at least 262144"},
		{"explain class nobody", "not-found", "inference, training"},
		{"volume create v --size 1MiB --class nobody", "invalid-argument", "inference, training"},
		{"reserve create \u00e4 --iops 5", "invalid-argument", "printable characters"},
		{"reserve create " + strings.Repeat("j", 129) + " --iops 5", "invalid-argument", "want 1 to 128"},
		{"reserve create job --iops 5 --ttl 9000h", "invalid-argument", "want at most"},
		{"class set training --limit 2PiB", "invalid-argument", "want at most"},
		{"class set training --target 1ns", "invalid-argument", "latency target"},
		{"class set training --slo 48h", "invalid-argument", "objective"},
		{"class add inference", "already-exists", "class set inference"},
		{"class rm inference --yes", "invalid-argument", "built in"},
		{"class rm inference", "invalid-argument", "--yes"},
		{"reserve create job --bandwidth 900TiB", "no-space", "are free"},
		{"reserve create job", "invalid-argument", "neither bytes nor operations"},
		{"reserve create job --iops -5", "invalid-argument", "less than nothing"},
		{"reserve create job --iops 5 --ttl 1ms", "invalid-argument", "1s to"},
		{"reserve create job --iops 5 --ttl -1s", "invalid-argument", "-1s"},
		{"reserve create job --iops 5 --class nobody", "not-found", "class ls"},
		{"reserve show job", "not-found", "reserve ls"},
		{"reserve renew job", "not-found", "reserve ls"},
		{"reserve rm job", "not-found", "reserve ls"},
	})
}

// TestCellThatIsNotThereIsNamedWithin5Seconds: one address refuses, another takes the
// connection and never answers.
func TestCellThatIsNotThereIsNamedWithin5Seconds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	refusing := l.Addr().String()
	l.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes the connections
	must(t, err)
	defer silent.Close()
	for cell, wants := range map[string][]string{
		refusing:                                {refusing, "refused"},
		silent.Addr().String():                  {silent.Addr().String(), "answer"},
		refusing + "," + silent.Addr().String(): {refusing, "refused", silent.Addr().String(), "answer"},
	} {
		begun := time.Now()
		_, bad, code := run("status", "--cell", cell)
		if took := time.Since(begun); code != exitFailed || took > 6*time.Second {
			t.Errorf("%s: exit %d after %v", cell, code, took)
		}
		for _, want := range wants {
			if !strings.Contains(bad, want) {
				t.Errorf("%s: no %q in %s", cell, want, bad)
			}
		}
	}
}

func TestVolumeLifeByHand(t *testing.T) {
	cell := devTest(t, 2)
	must1 := func(args ...string) string {
		t.Helper()
		out, bad, code := run(append(args, "--cell", cell)...)
		if code != 0 {
			t.Fatalf("%q: exit %d, %s", args, code, bad)
		}
		return out
	}
	must1("volume", "create", "team/v", "--size", "1MiB")
	if out := must1("volume", "show", "team/v"); !strings.Contains(out, "1+1: up to 1 of a segment's 2 servers") {
		t.Errorf("got %s", out)
	}
	must1("volume", "resize", "team/v", "--size", "32MiB")
	dir := t.TempDir()
	in, back := filepath.Join(dir, "in"), filepath.Join(dir, "back")
	content := bytes.Repeat([]byte("0123456789abcdef"), 650_001)
	must(t, os.WriteFile(in, content, 0o644))
	lines := must1("volume", "import", "team/v", in, "--flush-every", "4MiB", "-o", "json", "--offset", "12345")
	if last := lastFlush(t, lines); last != int64(len(content)) {
		t.Errorf("the last line says %d flushed bytes, want %d:\n%s", last, len(content), lines)
	}
	must1("volume", "export", "team/v", back, "--offset", "12345", "--bytes", fmt.Sprint(len(content)))
	if got, _ := os.ReadFile(back); !bytes.Equal(got, content) {
		t.Error("what came back differs")
	}
	must1("volume", "rm", "team/v", "--yes")
	if out := must1("volume", "ls", "--removed"); !strings.Contains(out, "team/v") {
		t.Errorf("got %s", out)
	}
	must1("volume", "undelete", "team/v")
	if out := must1("volume", "export", "team/v", "-", "--offset", "12345", "--bytes", "16"); out != "0123456789abcdef" {
		t.Errorf("after undelete: got %q", out)
	}
	if out := must1("server", "ls"); strings.Count(out, "\n") != 3 {
		t.Errorf("got %s", out)
	}
	must1("status")
}

func lastFlush(t *testing.T, lines string) (last int64) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(lines)); ; {
		var line struct {
			Flushed int64 `json:"flushed_bytes"`
		}
		if err := d.Decode(&line); err == io.EOF {
			return last
		} else if err != nil || line.Flushed < last {
			t.Fatalf("%v after %d, in\n%s", err, last, lines)
		}
		last = line.Flushed
	}
}

func TestSecondWriterLearnsWhoHoldsTheVolume(t *testing.T) {
	addr := devTest(t, 2)
	if _, bad, code := run("volume", "create", "v", "--size", "1MiB", "--cell", addr); code != 0 {
		t.Fatal(bad)
	}
	cell, err := client.Dial(t.Context(), client.Config{Addresses: addr, Owner: "the first writer"})
	must(t, err)
	defer cell.Close()
	vol, err := cell.Open(t.Context(), "v", client.OpenOptions{Write: true})
	must(t, err)
	_, bad, code := run("volume", "import", "v", "/etc/hostname", "--cell", addr)
	if code != exitFailed || !strings.Contains(bad, "the first writer") || !strings.Contains(bad, "--force") {
		t.Errorf("exit %d, %s", code, bad)
	}
	if _, bad, code := run("volume", "import", "v", "/etc/hostname", "--cell", addr, "--force"); code != 0 {
		t.Errorf("exit %d, %s", code, bad)
	}
	_, err = vol.WriteAt(make([]byte, 4096), 0)
	if err == nil {
		err = vol.Flush(context.Background())
	}
	if err == nil {
		t.Error("a writer that was shut out could write and flush")
	}
}
