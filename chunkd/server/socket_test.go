package server

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"strake/internal/tls"
)

// socketPair gives both ends of a connection over loopback, or of a pipe, which is
// no socket.
func socketPair(t *testing.T, pipe bool) (s *socket, peer net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	if !pipe {
		l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if far, err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		if near, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return newSocket(near, new(atomic.Uint64)), far
}

func eachPair(t *testing.T, test func(t *testing.T, s *socket, peer net.Conn)) {
	for name, pipe := range map[string]bool{"socket": false, "pipe": true} {
		t.Run(name, func(t *testing.T) {
			s, peer := socketPair(t, pipe)
			test(t, s, peer)
		})
	}
}

// TestSocketWritesAllPieces: more than the socket's buffer takes, in more pieces
// than one system call does, some of them empty.
func TestSocketWritesAllPieces(t *testing.T) {
	eachPair(t, func(t *testing.T, s *socket, peer net.Conn) {
		r := rand.New(rand.NewSource(1))
		var pieces net.Buffers
		var want []byte
		for range 3 * maxPieces {
			p := make([]byte, r.Intn(8<<10)&^(r.Intn(2)*(8<<10-1)))
			r.Read(p)
			pieces, want = append(pieces, p), append(want, p...)
		}
		wrote := make(chan error, 1)
		go func() {
			err := s.Writev(pieces)
			if err == nil {
				err = s.Write(want)
			}
			wrote <- err
		}()
		for range 2 {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes came out differently, or %v", len(want), err)
			}
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
	})
}

func TestSocketReadsUntilTheEnd(t *testing.T) {
	eachPair(t, func(t *testing.T, s *socket, peer net.Conn) {
		go func() {
			peer.Write([]byte("abc"))
			peer.Close()
		}()
		got, err := io.ReadAll(s)
		if err != nil || string(got) != "abc" {
			t.Fatalf("read %q: %v", got, err)
		}
	})
}

func TestSocketHonoursDeadlinesAndClose(t *testing.T) {
	eachPair(t, func(t *testing.T, s *socket, peer net.Conn) {
		s.nc.SetDeadline(time.Now().Add(time.Millisecond))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read: %v", err)
		}
		if err := s.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("write: %v", err)
		}
		if err := s.Writev(net.Buffers{make([]byte, 1)}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("writev: %v", err)
		}
		s.nc.SetDeadline(time.Time{})
		time.AfterFunc(time.Millisecond, func() { s.nc.Close() })
		for err := error(nil); err == nil; {
			_, err = s.Read(make([]byte, 1<<20))
		}
		if err := s.Write([]byte("x")); err == nil {
			t.Fatal("a closed socket was written to")
		}
	})
}
