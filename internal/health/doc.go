// Package health tells whether a daemon is well: Register answers in its gRPC
// server by the standard protocol (grpc.health.v1), Ask asks.
//
// There are two questions. Alive, the empty service: the process answers at all;
// one that does not may be ended and started again. Ready: it is a member of its
// cell and serves; one that does not may need its peers first, and ending it
// would only make things worse.
//
// Nothing here has state; all functions are safe for concurrent use.
package health
