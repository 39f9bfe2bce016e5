package transport

import (
	"strake/internal/errs"
	"strake/proto/frame"
)

// Handler answers requests in place of a chunk server. meta and payload are its
// own until it replies. It may reply later and from another goroutine; what it
// replies with is copied before reply returns. Only the first reply counts.
type Handler func(req frame.Request, meta, payload []byte, reply ReplyFunc)

// ReplyFunc sends a reply. Kind, ID and the lengths are set by it.
type ReplyFunc func(r frame.Reply, meta []byte, payload ...[]byte)

// Refuse replies with an error.
func (reply ReplyFunc) Refuse(err error) {
	reply(frame.Reply{Status: errs.KindOf(err)}, frame.AppendError(nil, err))
}
