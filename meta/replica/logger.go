package replica

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// hclogger passes what raft logs on to slog. raft's Info is this service's
// Debug: an operator acts on leadership and membership, which replica logs
// itself.
type hclogger struct {
	hclog.Logger // a null logger, for the methods that nobody calls
	to           *slog.Logger
	name         string
	said         *quiet
}

func hclogOf(to *slog.Logger) hclog.Logger {
	return &hclogger{Logger: hclog.NewNullLogger(), to: to, name: "raft", said: &quiet{at: map[string]time.Time{}}}
}

// sayAgain is how long an equal warning is not repeated: raft repeats some with
// each failed heartbeat to a server that is down.
const sayAgain = 30 * time.Second

// quiet remembers when each warning was last given. Messages are constants, so
// their number is bounded.
type quiet struct {
	mu sync.Mutex
	at map[string]time.Time // guarded by mu
}

func (q *quiet) again(msg string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.at[msg]; ok && time.Since(at) < sayAgain {
		return false
	}
	q.at[msg] = time.Now()
	return true
}

func (l *hclogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Warn:
		to = slog.LevelInfo
	case hclog.Error:
		to = slog.LevelWarn
	case hclog.NoLevel, hclog.Off, hclog.Trace:
		return
	}
	if strings.HasPrefix(msg, "failed to decode incoming command") {
		to = slog.LevelDebug // a connection that ended
	}
	if to > slog.LevelDebug && !l.said.again(msg) {
		to = slog.LevelDebug
	}
	if l.to.Enabled(context.Background(), to) {
		l.to.Log(context.Background(), to, l.name+": "+strings.ToLower(msg), args...)
	}
}

func (l *hclogger) Trace(string, ...any)           {}
func (l *hclogger) Debug(msg string, args ...any)  { l.Log(hclog.Debug, msg, args...) }
func (l *hclogger) Info(msg string, args ...any)   { l.Log(hclog.Info, msg, args...) }
func (l *hclogger) Warn(msg string, args ...any)   { l.Log(hclog.Warn, msg, args...) }
func (l *hclogger) Error(msg string, args ...any)  { l.Log(hclog.Error, msg, args...) }
func (l *hclogger) Named(name string) hclog.Logger { return l.ResetNamed(l.name + "." + name) }
func (l *hclogger) With(args ...any) hclog.Logger {
	return &hclogger{l.Logger, l.to.With(args...), l.name, l.said}
}
func (l *hclogger) Name() string { return l.name }
func (l *hclogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

// ResetNamed implements hclog.Logger.
func (l *hclogger) ResetNamed(name string) hclog.Logger {
	return &hclogger{l.Logger, l.to, name, l.said}
}
