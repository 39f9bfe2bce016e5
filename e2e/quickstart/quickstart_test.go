package quickstart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strake/e2e/cluster"
)

// blockTimeout bounds one block of the document.
const blockTimeout = 2 * time.Minute

// block is a piece of the document that is typed somewhere.
type block struct {
	where string // "each machine", or an address
	lines string
}

// blocks reads the document's commands.
func blocks(t *testing.T, document string) []block {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var list []block
	for _, part := range strings.Split(string(text), "```sh\n")[1:] {
		lines, _, ended := strings.Cut(part, "```")
		where, _, _ := strings.Cut(lines, "\n")
		where, marked := strings.CutPrefix(where, "# on ")
		if !ended || !marked {
			t.Fatalf("a block of %s does not say where it is typed: %q", document, lines)
		}
		list = append(list, block{where, lines})
	}
	return list
}

// machine is a host of its own network, processes, name and files: what is written
// to /etc, /usr/local, /var and /root stays its own.
type machine struct {
	address string
	init    *exec.Cmd
	pid     int
}

// startMachine makes the namespaces; pid 1 in them is a shell that waits.
func startMachine(t *testing.T, i int) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{address: fmt.Sprintf("10.0.0.%d", i)}
	script := "set -e\nmount -t tmpfs none " + dir + "\n"
	for _, folder := range []string{"etc", "usr/local", "var", "root"} {
		at := filepath.Join(dir, folder)
		script += fmt.Sprintf("mkdir -p %s/up %s/work\nmount -t overlay overlay -o lowerdir=/%s,upperdir=%s/up,workdir=%s/work /%s\n", at, at, folder, at, at, folder)
	}
	script += "hostname machine-" + strconv.Itoa(i) + "\nmount -t proc proc /proc\necho ready\nexec sleep infinity\n"
	m.init = exec.Command("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", script)
	m.init.Stderr = os.Stderr
	out, err := m.init.StdoutPipe()
	check(t, err)
	check(t, m.init.Start())
	t.Cleanup(func() {
		_ = m.init.Process.Kill() // and with it, by --kill-child, all that runs in there
		_ = m.init.Wait()
	})
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatalf("machine %d: %v", i, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", m.init.Process.Pid, m.init.Process.Pid))
	check(t, err)
	m.pid, err = strconv.Atoi(strings.TrimSpace(string(children)))
	check(t, err)
	return m
}

// connect puts machines onto a bridge that is in the first one's network.
func connect(t *testing.T, machines []*machine) {
	t.Helper()
	first := machines[0]
	first.network(t, "link set lo up", "link add net0 type bridge", "link set net0 up", "addr add "+first.address+"/24 dev net0")
	for i, m := range machines[1:] {
		port := fmt.Sprintf("port%d", i)
		first.network(t, fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port, m.pid), "link set "+port+" master net0 up")
		m.network(t, "link set lo up", "addr add "+m.address+"/24 dev eth0", "link set eth0 up")
	}
}

// network changes the machine's network from outside, where the other machines'
// processes have the numbers that this test knows.
func (m *machine) network(t *testing.T, changes ...string) {
	t.Helper()
	for _, c := range changes {
		args := append([]string{"-t", strconv.Itoa(m.pid), "--net", "ip"}, strings.Fields(c)...)
		if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: ip %s: %v: %s", m.address, c, err, out)
		}
	}
}

// run types commands; they stop at the first that fails.
func (m *machine) run(ctx context.Context, dir, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", strconv.Itoa(m.pid), "--net", "--mount", "--uts", "--pid", "--wd="+dir, "bash", "-e", "-c", commands)
	cmd.WaitDelay = time.Second // daemons may hold the output
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return string(out), err
}

func (m *machine) must(t *testing.T, commands string) {
	t.Helper()
	if out, err := m.run(t.Context(), "/", commands); err != nil {
		t.Fatalf("%s: %s: %v\n%s", m.address, commands, err, out)
	}
}

// systemctl stands in for systemd, which does not run inside a namespace: it starts
// what the unit's ExecStart says, as the unit's user, in folders that the unit
// names.
const systemctl = `cat > /usr/local/sbin/systemctl <<'END'
#!/bin/bash
set -e
verb=$1; shift
[ "$verb" != daemon-reload ] || exit 0
[ "$verb" != enable ] || { [ "$1" = --now ]; shift; verb=start; }
for unit; do
  file=/etc/systemd/system/$unit.service
  get() { sed -n "s/^$1=//p" "$file"; }
  case $verb in
  start)
    for d in $(get StateDirectory); do install -d -m "$(get StateDirectoryMode)" -o "$(get User)" -g "$(get Group)" "/var/lib/$d"; done
    setsid setpriv --reuid "$(get User)" --regid "$(get Group)" --clear-groups $(get ExecStart) </dev/null >>/var/log/$unit.log 2>&1 &
    echo $! >/var/log/$unit.pid ;;
  stop)
    pid=$(cat /var/log/$unit.pid); kill $pid
    while grep -qs '^State:.[^Z]' /proc/$pid/status; do sleep 0.1; done ;;
  *) echo "systemctl $verb?" >&2; exit 1 ;;
  esac
done
END
chmod +x /usr/local/sbin/systemctl
`

// TestTheDocumentsOwnCommands types docs/quickstart.md on three machines.
func TestTheDocumentsOwnCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("a cell of three machines, for half a minute")
	}
	if err := able(); err != nil {
		t.Skipf("*** SKIPPED: no machines can be made here: %v ***", err)
	}
	source := sourceFolder(t)
	var machines []*machine
	for i := range 3 {
		machines = append(machines, startMachine(t, i+1))
	}
	connect(t, machines)
	for _, m := range machines {
		m.must(t, systemctl)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range machines {
				out, _ := m.run(context.Background(), "/", "tail -n 30 /var/log/strake-*.log")
				t.Logf("--- %s\n%s", m.address, out)
			}
		}
	})
	for _, b := range blocks(t, "../../docs/quickstart.md") {
		typed := 0
		for _, m := range machines {
			if b.where != "each machine" && b.where != m.address {
				continue
			}
			typed++
			out, err := m.run(t.Context(), source, b.lines)
			if err != nil {
				t.Fatalf("%s:\n%s\n%v\n%s", m.address, b.lines, err, out)
			}
			t.Logf("%s:\n%s%s", m.address, b.lines, out)
		}
		if typed == 0 {
			t.Fatalf("nobody is %q", b.where)
		}
	}
}

// able tells what is missing to make machines.
func able() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can")
	}
	for _, tool := range []string{"ip", "unshare", "nsenter", "setpriv", "useradd", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	cmd := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "ip", "link", "add", "probe", "type", "bridge")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// sourceFolder makes what the document has copied to each machine.
func sourceFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, errors.Join(os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.MkdirAll(filepath.Join(dir, "deploy"), 0o755)))
	_, err := cluster.Build(t.Context(), filepath.Join(dir, "bin"))
	check(t, err)
	check(t, os.CopyFS(filepath.Join(dir, "deploy", "systemd"), os.DirFS("../../deploy/systemd")))
	return dir
}

// TestUnitsAreInOrder has systemd read the units, where it is there.
func TestUnitsAreInOrder(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units %v, %v", units, err)
	}
	dir := t.TempDir()
	for _, u := range units {
		b, err := os.ReadFile(u)
		check(t, err)
		// The program and the user are not there on this machine.
		text := strings.ReplaceAll(string(b), "/usr/local/bin/strake", "/bin/true")
		check(t, os.WriteFile(filepath.Join(dir, filepath.Base(u)), []byte(text), 0o644))
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(dir, "strake-meta.service"), filepath.Join(dir, "strake-chunkd.service")).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) || strings.Contains(line, "strake-") {
			t.Errorf("systemd: %s", line)
		}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
