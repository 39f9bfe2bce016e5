package replica

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// Close hands leadership on where it can, stops raft and closes the directory.
// After a failure it does not wait long for goroutines that hang in the disk.
func (r *Replica) Close() error {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return nil
	}
	r.closing = true
	close(r.closed)
	rf := r.raft
	r.mu.Unlock()
	if rf == nil {
		return r.disk.close()
	}
	done := make(chan error, 1)
	go func() { done <- r.stop(rf) }()
	select {
	case err := <-done:
		return err
	case <-r.disk.guard.broken:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(abandonAfter):
		return nil // the disk hangs, and the process is about to end
	}
}

func (r *Replica) stop(rf *raft.Raft) error {
	r.wg.Wait() // controllers first: they propose
	r.settle()
	failed := r.disk.guard.failure() != nil
	if !failed && rf.State() == raft.Leader && len(rf.GetConfiguration().Configuration().Servers) > 1 {
		if err := rf.LeadershipTransfer().Error(); err != nil {
			r.log.Info("leadership not handed on", "err", err)
		}
	}
	err := rf.Shutdown().Error() // closes the transport's listener too
	r.net.Close()
	r.net.CloseStreams()
	return errors.Join(err, r.disk.close())
}

// settle waits for the answers that raft owes: it forgets what is under way when it
// stops. After a failure it owes none.
func (r *Replica) settle() {
	settled := make(chan struct{})
	go func() { defer close(settled); r.asked.Wait() }()
	select {
	case <-settled:
	case <-r.disk.guard.broken:
	}
}
