package transporttest

import (
	"bufio"
	"io"
	"net"
	"sync"

	"strake/client/internal/transport"
	"strake/proto/frame"
)

// Server answers frames on a listener by a handler: the least that can stand in
// for a chunk server on TCP.
type Server struct {
	listener net.Listener
	handler  transport.Handler
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu; nil once closed
}

// Serve starts a server. Close ends it.
func Serve(l net.Listener, h transport.Handler) *Server {
	s := &Server{listener: l, handler: h, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	return s
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the listener and all connections and waits for their goroutines.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.conns == nil {
			c.Close()
		} else {
			s.conns[c] = true
			s.wg.Go(func() { s.serve(c) })
		}
		s.mu.Unlock()
	}
}

// serve reads requests until the stream ends or a frame is bad.
func (s *Server) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	var mu sync.Mutex // orders replies
	for {
		var header [frame.HeaderLen]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		req, err := frame.DecodeRequest(header[:])
		if err != nil {
			return
		}
		body := make([]byte, req.Meta+req.Payload)
		if _, err := io.ReadFull(r, body); err != nil || frame.Verify(header[:], body[:req.Meta]) != nil {
			return
		}
		var once sync.Once
		s.handler(req, body[:req.Meta:req.Meta], body[req.Meta:], func(reply frame.Reply, meta []byte, payload ...[]byte) {
			once.Do(func() {
				b := Encode(req, reply, meta, payload...)
				mu.Lock()
				defer mu.Unlock()
				_, _ = c.Write(b) // the reader finds out when the stream has ended
			})
		})
	}
}

// Encode is the wire form of a reply.
func Encode(req frame.Request, reply frame.Reply, meta []byte, payload ...[]byte) []byte {
	reply.Kind, reply.ID = req.Kind, req.ID
	for _, p := range payload {
		reply.Payload += len(p)
	}
	b := make([]byte, frame.HeaderLen, frame.HeaderLen+len(meta)+reply.Payload)
	reply.Encode(b, meta)
	b = append(b, meta...)
	for _, p := range payload {
		b = append(b, p...)
	}
	return b
}
