package cluster

import (
	"os/exec"
	"runtime"
	"syscall"
)

// spawner starts processes from one thread that lives as long as it does.
type spawner struct {
	requests chan spawnRequest
	done     chan struct{}
}

type spawnRequest struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			// A group of its own: Ctrl-C on the terminal is the cluster's to deal with.
			r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
			r.err <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd, make(chan error, 1)}
	s.requests <- r
	return <-r.err
}

// close ends the thread; whatever it started and still runs is killed.
func (s *spawner) close() {
	close(s.requests)
	<-s.done
}
