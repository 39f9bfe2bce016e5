package transport

import (
	"context"

	"strake/proto/frame"
)

// Transport opens connections to chunk servers. Safe for concurrent use.
type Transport interface {
	// Dial connects to a chunk server's data address and says hello. Errors are
	// of kind Unavailable (refused, reset, no route: at once, never after a
	// wait), Deadline, WrongCell or Unauthenticated.
	Dial(ctx context.Context, addr string, hello frame.HelloBody) (Conn, error)
	// Register prepares a buffer for zero-copy transfers, where the transport
	// has such a thing; TCP and Mem do nothing. A registered buffer may be used,
	// whole or in part, as Payload and Into of any call of this transport until
	// the Region is closed.
	Register(buf []byte) (Region, error)
}

// Region is a registered buffer.
type Region interface {
	// Close ends the registration. No call that uses the buffer may be under way.
	Close() error
}

// Conn is one connection. Safe for concurrent use.
type Conn interface {
	// Submit sends a call. It never blocks on the network: calls that can't be
	// written now are queued, at most Window bytes of payload in each direction;
	// past that it returns an error of kind Overloaded and Done is not run. On a
	// connection that has failed it returns the reason, and Done is not run.
	Submit(call *Call) error
	// Cancel ends a call that was submitted: when it returns, Done has run (with
	// kind Canceled unless the reply had come) and no buffer of the call is in
	// use. It may close the connection when a reply is stuck half read.
	Cancel(call *Call)
	// Window is how many payload bytes may be under way in each direction: the
	// receiver's pacing. It may change; read it before planning.
	Window() int
	// Peer is what the server said of itself in its hello.
	Peer() frame.HelloReply
	// Err is nil while the connection works, else why it ended.
	Err() error
	// Close ends the connection: calls under way are Done with kind Unavailable
	// before it returns.
	Close() error
}

// Call is one request and its reply. The zero value is ready to be filled in;
// after Done it may be used again (which saves its allocation).
type Call struct {
	// Set by the caller.
	Request frame.Request // ID, Meta, Payload are set by the connection
	Meta    []byte        // encoded body
	Payload [][]byte      // sent after meta; not changed until Done
	Into    [][]byte      // the reply's payload goes here; its length must match unless it is an error
	Done    func(*Call)   // run once, on the connection's goroutine: it must not block
	User    any           // the caller's own

	// Set by the connection before Done.
	Reply     frame.Reply
	ReplyMeta []byte // valid until the Call is used again; its array is reused
	Err       error  // transport error, or the reply's status as a typed error

	conn any // the connection's bookkeeping
}
