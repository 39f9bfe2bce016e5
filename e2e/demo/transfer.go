package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"strake/e2e/cluster"
)

const (
	lateBytes = 96 << 20 // written while servers are gone
	// killAfter is how much an importer has called durable when it is killed.
	killAfter = 48 << 20
)

// transfer is one import or export.
type transfer struct {
	bytes   int64
	seconds float64
	sum     string // SHA-256, hex
}

func (t transfer) rate() string {
	return fmt.Sprintf("%.0f MiB/s", float64(t.bytes)/(1<<20)/max(t.seconds, 1e-3))
}

func text(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// strake runs the command to its end; what it prints is shown.
func (s *show) strake(ctx context.Context, args ...string) error {
	return s.exec(ctx, nil, os.Stdout, args...)
}

// strakeIn runs the command with a text on its standard input.
func (s *show) strakeIn(ctx context.Context, in string, args ...string) error {
	return s.exec(ctx, strings.NewReader(in), io.Discard, args...)
}

func (s *show) exec(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, s.options.binary, append(args, "--cell", s.cell.Cell)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("strake %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// importedLine is what `strake volume import` prints.
var importedLine = regexp.MustCompile(`imported (\d+) bytes .* in ([0-9.]+) s, .*\nsha256 ([0-9a-f]{64})`)

// importTo imports a file or a tree with the command.
func (s *show) importTo(ctx context.Context, volume, source string) (transfer, error) {
	var out bytes.Buffer
	if err := s.exec(ctx, nil, io.MultiWriter(os.Stdout, &out), "volume", "import", volume, source); err != nil {
		return transfer{}, err
	}
	m := importedLine.FindStringSubmatch(out.String())
	if m == nil {
		return transfer{}, fmt.Errorf("strake volume import printed %q", out.String())
	}
	t := transfer{sum: m[3]}
	t.bytes, _ = strconv.ParseInt(m[1], 10, 64)
	t.seconds, _ = strconv.ParseFloat(m[2], 64)
	return t, nil
}

// importNoise imports random bytes through a pipe, summed on this side of it.
func (s *show) importNoise(ctx context.Context, volume string, at int64) (transfer, error) {
	sum := sha256.New()
	noise := rand.NewChaCha8([32]byte{1, 2, 3})
	begun := time.Now()
	err := s.exec(ctx, io.TeeReader(io.LimitReader(noise, lateBytes), sum), os.Stdout,
		"volume", "import", volume, "-", "--offset", strconv.FormatInt(at, 10))
	return finish(lateBytes, begun, sum), err
}

func finish(n int64, begun time.Time, sum hash.Hash) transfer {
	return transfer{bytes: n, seconds: time.Since(begun).Seconds(), sum: hex.EncodeToString(sum.Sum(nil))}
}

// compare exports the first bytes of a volume and compares their sum.
func (s *show) compare(ctx context.Context, volume string, n int64, want string) (transfer, error) {
	return s.compareAt(ctx, volume, 0, n, want)
}

func (s *show) compareAt(ctx context.Context, volume string, at, n int64, want string) (transfer, error) {
	t, err := s.exportSum(ctx, volume, at, n)
	if err != nil {
		return t, err
	}
	if t.bytes != n || t.sum != want {
		return t, fmt.Errorf("MISMATCH: %d bytes of %s at %d have sha256 %s, want %d bytes with %s", t.bytes, volume, at, t.sum, n, want)
	}
	fmt.Printf("    equal to what went in\n")
	return t, nil
}

// exportSum exports a range through a pipe and sums it on this side.
func (s *show) exportSum(ctx context.Context, volume string, at, n int64) (transfer, error) {
	sum := sha256.New()
	count := &counter{to: sum}
	begun := time.Now()
	err := s.exec(ctx, nil, count, "volume", "export", volume, "-", "--offset", strconv.FormatInt(at, 10), "--bytes", strconv.FormatInt(n, 10))
	return finish(count.n, begun, sum), err
}

type counter struct {
	to io.Writer
	n  int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.to.Write(p)
}

// importAndKill kills an importer once it has called enough bytes durable. It
// gives the last figure that it told.
func (s *show) importAndKill(ctx context.Context, volume string) (flushed int64, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	p, err := s.cell.Spawn("importer", cluster.Program{Stdout: w,
		Args: []string{"volume", "import", volume, s.options.source, "-o", "json", "--flush-every", "8MiB"}})
	w.Close()
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(r)
	for killed := false; lines.Scan(); {
		var line struct {
			Flushed int64  `json:"flushed_bytes"`
			SHA256  string `json:"sha256"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // cut off by the end
		}
		if line.SHA256 != "" {
			return 0, fmt.Errorf("the importer was done before it was killed; the tree has to be larger than %s", text(killAfter))
		}
		flushed = line.Flushed
		if flushed >= killAfter && !killed {
			if killed = true; p.Kill() != nil {
				return 0, fmt.Errorf("the importer ended by itself:\n%s", p.Tail(20))
			}
		}
	}
	if flushed == 0 {
		return 0, fmt.Errorf("the importer flushed nothing:\n%s", p.Tail(20))
	}
	return flushed, lines.Err()
}
