// Package pb holds the generated protobuf messages and gRPC services of the
// control plane, and the one conversion of typed errors to gRPC statuses and
// back. Nothing else in it is written by hand; `make generate` makes the rest.
package pb
