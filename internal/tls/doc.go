// Package tls is the one seam through which strake listens and dials.
//
// Every listener and every dialer, of the data plane and of gRPC, is made here,
// so that transport security is decided in one place. Today a Policy knows one
// rule: a listener that is not on loopback is refused, unless the operator said
// by a flag that anyone may read and destroy the data. Certificates, roles and
// TLS 1.3 join the Policy without a change to its callers.
package tls
