package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopTimeout bounds how long a process may take to end after SIGTERM.
const stopTimeout = 20 * time.Second

// Process is one process of a cluster: a server that can be started again, or a
// command that runs once. Its methods are safe for concurrent use.
type Process struct {
	Name    string // meta-1, chunkd-3, or what a test called it
	Addr    string // a server's address: of a metadata server, or of a data plane
	Control string // a chunk server's address for control

	cluster *Cluster
	binary  string
	args    []string
	env     []string // on top of this process's
	log     string   // path
	stdin   *os.File
	stdout  io.Writer

	mu       sync.Mutex
	cmd      *exec.Cmd     // guarded by mu; nil when it never ran
	ended    chan struct{} // guarded by mu; closed when cmd has ended
	err      error         // written before ended is closed: how it ended
	expected bool          // guarded by mu: its end was asked for
	logged   int64         // guarded by mu: the log's length, in bytes, when the present run began
	more     []string      // guarded by mu: arguments of the present run alone
}

// start runs the process.
func (p *Process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && !closed(p.ended) {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	cmd := exec.Command(p.binary, append(slices.Clip(p.args), p.more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if p.stdin != nil {
		cmd.Stdin = p.stdin
	}
	if p.stdout != nil {
		cmd.Stdout = p.stdout
	}
	cmd.Env = append(append(os.Environ(), "GORACE=halt_on_error=1 exitcode=66"), p.env...)
	if err := p.cluster.spawner.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended, p.expected, p.logged = cmd, ended, false, info.Size()
	go func() {
		p.err = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Restart starts a server that has ended, with more arguments for this time.
func (p *Process) Restart(more ...string) error {
	p.mu.Lock()
	p.more = more
	p.mu.Unlock()
	return p.start()
}

// Kill ends the process at once (SIGKILL) and waits for its end.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Ended()
	return nil
}

// Stop asks the process to end (SIGTERM) and waits. It is an error when it does
// not end with exit code 0, or not in time. One that was just started and had not
// come as far as to hear signals, nor to say anything, may end by the signal.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := p.waitFor(stopTimeout)
	if p.unheard() {
		return nil
	}
	return err
}

// unheard tells whether SIGTERM ended the process before it had said anything.
func (p *Process) unheard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	how, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	info, err := os.Stat(p.log)
	return ok && how.Signaled() && how.Signal() == syscall.SIGTERM && err == nil && info.Size() == p.logged
}

// Interrupt asks the process to end as Ctrl-C does (SIGINT), and waits; what it
// says of its end is no error here.
func (p *Process) Interrupt(within time.Duration) (code int, err error) {
	if err := p.signal(syscall.SIGINT); err != nil {
		return 0, err
	}
	select {
	case <-p.Ended():
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("%s did not end within %v", p.Name, within)
	}
}

// Wait waits until the process has ended by itself and tells how.
func (p *Process) Wait(within time.Duration) error {
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	return p.waitFor(within)
}

func (p *Process) waitFor(within time.Duration) error {
	select {
	case <-p.Ended():
		if p.err != nil {
			return fmt.Errorf("%s: %w\n%s", p.Name, p.err, p.Tail(20))
		}
		return nil
	case <-time.After(within):
		_ = p.signal(syscall.SIGQUIT) // its goroutines go to the log
		<-p.Ended()
		return fmt.Errorf("%s did not end within %v\n%s", p.Name, within, p.Tail(200))
	}
}

// Pause stops the process from running (SIGSTOP), and waits until all its threads
// stand still: on a busy machine some run on for a while. Resume lets it go on.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		switch err {
		case unix.EINTR:
		case unix.ECHILD: // it ended instead
			return nil
		default:
			return err
		}
	}
}

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Pid is the process's number, 0 while it never ran.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Running tells whether the process runs, paused ones included.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !closed(p.ended)
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *Process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || closed(p.ended) {
		return fmt.Errorf("%s does not run", p.Name)
	}
	if s == syscall.SIGKILL || s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT {
		p.expected = true
	}
	return p.cmd.Process.Signal(s)
}

// end stops the process for good, whatever state it is in.
func (p *Process) end(s syscall.Signal) {
	if p.Running() {
		_ = p.Resume()
		_ = p.signal(s)
	}
}

// complaint is what is wrong with the process, empty when nothing is.
func (p *Process) complaint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, _ := os.ReadFile(p.log)
	switch {
	case bytes.Contains(b, []byte("WARNING: DATA RACE")):
		return p.Name + " has a data race"
	case bytes.Contains(b, []byte("\npanic: ")) || bytes.HasPrefix(b, []byte("panic: ")) || bytes.Contains(b, []byte("\nfatal error: ")):
		return p.Name + " panicked"
	case p.cmd != nil && closed(p.ended) && !p.expected:
		return fmt.Sprintf("%s ended by itself: %v", p.Name, p.err)
	}
	return ""
}

// Log is the path of the process's log.
func (p *Process) Log() string { return p.log }

// Tail gives the last lines of its log.
func (p *Process) Tail(lines int) string {
	b, _ := os.ReadFile(p.log)
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
