package inprocess

import "sync"

// maxJournal bounds the log text that is kept: the end of it.
const maxJournal = 64 << 10

// journal keeps the end of what the servers log.
type journal struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write implements io.Writer for a log handler.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, b...)
	if over := len(j.text) - maxJournal; over > 0 {
		j.text = append(j.text[:0], j.text[over:]...)
	}
	return len(b), nil
}

// String gives what is kept.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text)
}
