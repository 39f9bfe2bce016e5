// Package transport carries data-plane frames between a client and chunk
// servers.
//
// A Transport opens connections; a Conn carries many calls at once, each
// answered exactly once. There are two implementations, TCP and Mem (in
// process, for tests and the seeded cluster), and one shared suite,
// transporttest, that both pass. The contract leaves room for a third (RDMA):
// buffers can be registered ahead, and a receiver paces what is sent to it.
//
// Story of a call. The caller fills in a Call and hands it to Submit; from then
// on the Call, its Meta, Payload and Into belong to the connection. The
// connection sends meta and payload, batching calls that wait into one system
// call, reads the reply's payload straight into Into, sets the results and runs
// Done once, on its own goroutine. From Done on, everything is the caller's
// again. Cancel gives the buffers back early: after it returns they are not
// touched any more.
package transport
