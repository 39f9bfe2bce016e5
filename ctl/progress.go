package ctl

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"
)

// progress shows how far a long copy is: a bar on a terminal, else a line every
// few seconds on stderr; nothing but the result with -o json.
type progress struct {
	pool  *mpb.Progress
	bar   *mpb.Bar
	bars  *bars
	out   io.Writer
	what  string
	total int64 // 0: unknown
	done  int64
	next  time.Time
}

// bars knows the progress bar that is on the terminal, so that lines go above it.
// The zero value works. Safe for concurrent use.
type bars struct {
	mu   sync.Mutex
	pool *mpb.Progress // guarded by mu; nil while there is none
}

func (b *bars) set(pool *mpb.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pool = pool
}

// line writes a line above the bar, or to out when there is none.
func (b *bars) line(out io.Writer, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pool != nil {
		out = b.pool
	}
	fmt.Fprintln(out, text)
}

// lineEvery is how often a line is written when there is no terminal.
const lineEvery = 5 * time.Second

// newProgress begins; total 0 means unknown.
func (a *app) newProgress(what string, total int64) *progress {
	p := &progress{out: a.err, what: what, total: total, next: time.Now().Add(lineEvery)}
	if a.json() {
		p.out = io.Discard
		return p
	}
	if f, ok := a.err.(*os.File); !ok || !isTerminal(f) {
		return p
	}
	p.pool, p.bars = mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(48)), &a.bars
	p.bars.set(p.pool)
	p.bar = p.pool.AddBar(total, mpb.PrependDecorators(p.counters()...),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)))
	return p
}

func (p *progress) counters() []decor.Decorator {
	if p.total == 0 {
		return []decor.Decorator{decor.Name(p.what + " "), decor.CurrentKibiByte("% .1f")}
	}
	return []decor.Decorator{decor.Name(p.what + " "), decor.CountersKibiByte("% .1f / % .1f")}
}

// add tells that n more bytes are done. One goroutine at a time.
func (p *progress) add(n int64) {
	p.done += n
	if p.bar != nil {
		p.bar.IncrInt64(n)
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(lineEvery)
		fmt.Fprintln(p.out, p.line())
	}
}

func (p *progress) line() string {
	if p.total == 0 {
		return fmt.Sprintf("%s: %s", p.what, sizeText(uint64(p.done)))
	}
	return fmt.Sprintf("%s: %s of %s (%d %%)", p.what, sizeText(uint64(p.done)), sizeText(uint64(p.total)), 100*p.done/p.total)
}

// end leaves the bar as it stands.
func (p *progress) end() {
	if p.bar != nil {
		p.bars.set(nil)
		p.bar.SetTotal(-1, true)
		p.pool.Wait()
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
