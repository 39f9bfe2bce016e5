package vfs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PreciseClock sleeps to within some tens of microseconds. Go's own timers are a
// millisecond late in a process that is idle, because it waits for them in
// epoll_wait, which counts in milliseconds; an emulated device of 100 us would have
// ten times its latency. So each sleep waits for a timer of the kernel's, in the way
// in which one waits for a socket: a goroutine that sleeps holds no thread, and
// above all none of the few processors of the Go scheduler, without which work that
// is ready does not run.
type PreciseClock struct {
	idle chan *os.File // timers that nobody waits for
}

var _ Clock = (*PreciseClock)(nil)

// idleTimers bounds the timers that are kept; more are made while more sleep.
const idleTimers = 64

// NewPreciseClock makes a clock. It keeps up to 64 file descriptors.
func NewPreciseClock() *PreciseClock { return &PreciseClock{make(chan *os.File, idleTimers)} }

// Now implements Clock.
func (*PreciseClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (c *PreciseClock) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	end := time.Now().Add(d)
	t, err := c.timer()
	if err != nil {
		time.Sleep(d) // out of descriptors: late is better than not at all
		return
	}
	for left := d; left > 0 && err == nil; left = time.Until(end) {
		err = sleepOn(t, left)
	}
	if err != nil {
		_ = t.Close()
		time.Sleep(time.Until(end))
		return
	}
	select {
	case c.idle <- t:
	default:
		_ = t.Close()
	}
}

// timer gives a timer that nobody else has.
func (c *PreciseClock) timer() (*os.File, error) {
	select {
	case t := <-c.idle:
		return t, nil
	default:
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "timer"), nil
}

// sleepOn waits until the timer has run for d.
func sleepOn(t *os.File, d time.Duration) error {
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var bad error
	err = raw.Control(func(fd uintptr) {
		bad = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	})
	if err == nil {
		err = bad
	}
	if err == nil {
		var fired [8]byte
		_, err = t.Read(fired[:])
	}
	return err
}
