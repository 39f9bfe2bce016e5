package replica

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// hclogger passes what raft logs on to slog. raft's Info is this service's
// Debug: an operator acts on leadership and membership, which replica logs
// itself.
type hclogger struct {
	hclog.Logger // a null logger, for the methods that nobody calls
	to           *slog.Logger
	name         string
}

func hclogOf(to *slog.Logger) hclog.Logger {
	return &hclogger{Logger: hclog.NewNullLogger(), to: to, name: "raft"}
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
	return &hclogger{l.Logger, l.to.With(args...), l.name}
}
func (l *hclogger) Name() string { return l.name }
func (l *hclogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

// ResetNamed implements hclog.Logger.
func (l *hclogger) ResetNamed(name string) hclog.Logger { return &hclogger{l.Logger, l.to, name} }
