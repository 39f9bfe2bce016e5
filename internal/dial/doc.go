// Package dial keeps the gRPC connections of the control plane.
//
// Pool holds one connection per address. Meta follows the metadata leader: it
// tries the cell's addresses, goes where a not-leader answer points, and retries
// what can be repeated until the caller's context ends. All mutations carry a
// command id, so that a repeat after a lost answer is harmless.
package dial
