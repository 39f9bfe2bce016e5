package store

import "slices"

// The life of a log file: free -> active (batches go there) -> full (waits for
// the move) -> free.

// oldestFull gives the full file with the lowest LSNs, once all its records are
// published.
func (l *appendLog) oldestFull() *logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *logFile
	for _, f := range l.files {
		if f.state == logFull && (oldest == nil || f.last < oldest.last) {
			oldest = f
		}
	}
	if oldest != nil && oldest.early > 0 {
		return nil
	}
	return oldest
}

// retire makes the active file full, so that a move takes it too.
func (l *appendLog) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.active; f != nil {
		f.state, l.active = logFull, nil
	}
}

func (l *appendLog) liveIn(f *logFile) []liveRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(f.live)
}

// setFreed raises the mark that the next batch of a move carries.
func (l *appendLog) setFreed(f *logFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freedLSN = max(l.freedLSN, f.last)
}

// reuse frees a file whose records are all in the index.
func (l *appendLog) reuse(f *logFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.state, f.live, f.end = logFree, nil, 0
}

// moved tells those that wait for space how a move went.
func (l *appendLog) moved(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves++
	l.moveErr = err
	l.freed.Broadcast()
}

// halt tells that no more moves will come.
func (l *appendLog) halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.freed.Broadcast()
}

// mayStart opens the log for batches. From here on a missing LSN below a later
// batch means damage, so nothing of an earlier incarnation may be left.
func (l *appendLog) mayStart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
}

func (l *appendLog) started() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}
