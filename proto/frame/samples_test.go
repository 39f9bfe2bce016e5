package frame

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// sample is one whole frame without its payload.
type sample struct {
	request *Request
	reply   *Reply
	meta    []byte
}

// bytes is the encoded frame; it sets the header's Meta.
func (s sample) bytes() []byte {
	b := make([]byte, HeaderLen)
	if s.request != nil {
		s.request.Encode(b, s.meta)
	} else {
		s.reply.Encode(b, s.meta)
	}
	return append(b, s.meta...)
}

func shard(segment layout.SegmentID, i layout.ShardIndex, g layout.Generation) ShardRef {
	return ShardRef{layout.ShardKey{Segment: segment, Shard: i}, g}
}

var (
	hello      = HelloBody{Cell: 0xce11, Volume: 7, Token: []byte("token")}
	helloReply = HelloReply{Server: 3, Handle: 99}
	appendBody = AppendBody{shard(9, 4, 2), []byte("a stripe header, opaque to the frame")}
	readBody   = ReadBody{shard(9, 1, 2), []ReadRange{{1 << 20, 8192}, {0, 4096}}}
	syncBody   = SyncBody{5, 2, []ShardRef{shard(9, 1, 2), shard(10, 0, 1)}}
	listBody   = ListBody{shard(9, 1, 2), 17, 1 << 20}
	listReply  = ListReply{18, 2}
	refusal    = errs.New(errs.StaleEpoch, "append to 9/1", "fenced at epoch 4").WithHint("stop writing")
)

// samples are a request and a reply of every kind, and an error.
func samples() map[string]sample {
	request := func(k Kind, f Flags, meta []byte, payload int) sample {
		return sample{request: &Request{Kind: k, Class: layout.ClassInference, Flags: f, ID: 0x1122334455667788, Epoch: 3, Acked: 20,
			Flushed: 17, Tenant: 1, Token: 99, Deadline: 1500 * time.Microsecond, Payload: payload}, meta: meta}
	}
	reply := func(k Kind, status errs.Kind, meta []byte, payload int) sample {
		return sample{reply: &Reply{Kind: k, Status: status, ID: 0x1122334455667788, Incarnation: 5, Queue: 12 * time.Microsecond,
			Service: 80 * time.Microsecond, Generation: 2, Load: 3, Payload: payload}, meta: meta}
	}
	reading := reply(Read, errs.OK, []byte{1, 0, 0, 0}, 4096)
	reading.reply.Reading = true
	return map[string]sample{
		"reading-reply": reading,
		"hello":         request(Hello, 0, hello.AppendTo(nil), 0),
		"hello-reply":   reply(Hello, errs.OK, helloReply.AppendTo(nil), 0),
		"append":        request(Append, Durable, appendBody.AppendTo(nil), 8192),
		"append-reply":  reply(Append, errs.OK, nil, 0),
		"read":          request(Read, Headers, readBody.AppendTo(nil), 0),
		"read-reply":    reply(Read, errs.OK, []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}, 12288),
		"sync":          request(Sync, 0, syncBody.AppendTo(nil), 0),
		"sync-reply":    reply(Sync, errs.OK, nil, 0),
		"list":          request(List, Recovery, listBody.AppendTo(nil), 0),
		"list-reply":    reply(List, errs.OK, listReply.AppendTo(nil), 240),
		"ping":          request(Ping, 0, nil, 0),
		"ping-reply":    reply(Ping, errs.OK, nil, 0),
		"error-reply":   reply(Append, errs.StaleEpoch, AppendError(nil, refusal), 0),
	}
}
