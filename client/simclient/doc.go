// Package simclient is the client's shell for the seeded cluster: it drives the
// same cores as package client (write, read, recovery, extent) with the same
// steps in the same order, on one thread. Package client may not be used there:
// its goroutines, sockets and clocks can't be replayed.
//
// It owns a client process: its session, leases, volumes and what they keep in
// memory. It does not own time, messages or random numbers: a World gives them.
//
// What package client does with goroutines that wait, this package does with
// fibers: functions that are run by the loop and give it the control back while
// they wait. Exactly one runs at a time and the loop decides which, so the order
// of all steps follows from the World alone. (They are iter.Pull's coroutines;
// chains of callbacks would do the same and hide the protocol's steps.)
//
// Where the shell of package client is changed, this one has to follow: the file
// names are the same.
package simclient
