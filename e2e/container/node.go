package container

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// stopWithin is how long a process may take to end that was asked to.
const stopWithin = 90 * time.Second

// Node is one container: a server, etcd or a workload.
type Node struct {
	Name string // meta-1, chunkd-3, etcd, or what a test called it: its name in the cell's network

	cell   *Cell
	image  string
	args   []string
	env    []string
	mounts []string // options of docker run
	old    string   // logs of containers that are gone
}

// Container is the container's name.
func (n *Node) Container() string { return n.cell.prefix + "-" + n.Name }

// run makes the container and starts it.
func (n *Node) run(ctx context.Context) error {
	args := append([]string{"run", "-d", "--name", n.Container(), "--hostname", n.Name, "--network", n.cell.network, "--network-alias", n.Name,
		"--read-only", "--cap-drop", "ALL", "--no-healthcheck"}, n.cell.engine.label()...)
	for _, e := range n.env {
		args = append(args, "--env", e)
	}
	args = append(args, n.mounts...)
	_, err := n.docker(ctx, append(append(args, n.image), n.args...)...)
	return err
}

func (n *Node) docker(ctx context.Context, args ...string) (string, error) {
	return n.cell.engine.docker(ctx, args...)
}

// Kill ends its process at once.
func (n *Node) Kill(ctx context.Context) error {
	n.cell.Note("kill %s", n.Name)
	_, err := n.docker(ctx, "kill", "-s", "KILL", n.Container())
	return err
}

// Stop asks its process to end, which it must do within stopWithin. One that does
// not is left as it is, to be looked into.
func (n *Node) Stop(ctx context.Context) error {
	n.cell.Note("stop %s", n.Name)
	if _, err := n.docker(ctx, "kill", "-s", "TERM", n.Container()); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	code, err := n.Wait(waiting)
	if err != nil && waiting.Err() != nil {
		return fmt.Errorf("%s did not end within %v after it was asked to", n.Name, stopWithin)
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with code %d after it was asked to", n.Name, code)
	}
	return err
}

// Start starts it again, in the same container.
func (n *Node) Start(ctx context.Context) error {
	n.cell.Note("start %s", n.Name)
	_, err := n.docker(ctx, "start", n.Container())
	return err
}

// Replace stops it and starts a new container of another image on its volume.
func (n *Node) Replace(ctx context.Context, image string) error {
	n.cell.Note("replace %s by %s", n.Name, image)
	if err := n.Stop(ctx); err != nil {
		return err
	}
	n.old += n.Log(ctx, 200)
	if _, err := n.docker(ctx, "rm", n.Container()); err != nil {
		return err
	}
	n.image = image
	return n.run(ctx)
}

// Pause stops it from running, its connections open; Resume lets it go on.
func (n *Node) Pause(ctx context.Context) error {
	n.cell.Note("pause %s", n.Name)
	_, err := n.docker(ctx, "pause", n.Container())
	return err
}

// Resume lets a paused node go on.
func (n *Node) Resume(ctx context.Context) error {
	n.cell.Note("resume %s", n.Name)
	_, err := n.docker(ctx, "unpause", n.Container())
	return err
}

// Disconnect takes it off the network; Connect puts it back, under its name and
// most likely under another address.
func (n *Node) Disconnect(ctx context.Context) error {
	n.cell.Note("disconnect %s", n.Name)
	_, err := n.docker(ctx, "network", "disconnect", n.cell.network, n.Container())
	return err
}

// Connect puts it on the cell's network.
func (n *Node) Connect(ctx context.Context) error {
	_, err := n.docker(ctx, "network", "connect", "--alias", n.Name, n.cell.network, n.Container())
	n.cell.Note("connect %s", n.Name)
	return err
}

// move takes it from one network to the cell's, if it runs.
func (n *Node) move(ctx context.Context, from string) error {
	if !n.Running(ctx) {
		return nil
	}
	if _, err := n.docker(ctx, "network", "disconnect", from, n.Container()); err != nil {
		return err
	}
	return n.Connect(ctx)
}

// Pid is its process's number on the host.
func (n *Node) Pid(ctx context.Context) (int, error) {
	out, err := n.docker(ctx, "inspect", "-f", "{{.State.Pid}}", n.Container())
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(out)
	if err == nil && pid == 0 {
		err = fmt.Errorf("%s does not run", n.Name)
	}
	return pid, err
}

// IP is its address in the cell's network.
func (n *Node) IP(ctx context.Context) (string, error) {
	return n.docker(ctx, "inspect", "-f", `{{with index .NetworkSettings.Networks "`+n.cell.network+`"}}{{.IPAddress}}{{end}}`, n.Container())
}

// Running tells whether its process runs.
func (n *Node) Running(ctx context.Context) bool {
	out, err := n.docker(ctx, "inspect", "-f", "{{.State.Running}}", n.Container())
	return err == nil && out == "true"
}

// Wait waits until its process has ended and gives its exit code.
func (n *Node) Wait(ctx context.Context) (int, error) {
	out, err := n.docker(ctx, "wait", n.Container())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// Exec runs the strake command inside it.
func (n *Node) Exec(ctx context.Context, args ...string) (string, error) {
	return n.docker(ctx, append([]string{"exec", n.Container(), "/strake"}, args...)...)
}

// Stdout is what its process wrote to its standard output.
func (n *Node) Stdout(ctx context.Context, lines int) (string, error) {
	return n.docker(ctx, "logs", "--tail", strconv.Itoa(lines), n.Container())
}

// Log is the end of what it wrote, in all of its containers.
func (n *Node) Log(ctx context.Context, lines int) string {
	out, err := combined(ctx, "docker", "logs", "--tail", strconv.Itoa(lines), n.Container())
	if err != nil {
		out += err.Error()
	}
	return n.old + strings.TrimRight(out, "\n") + "\n"
}
