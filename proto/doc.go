// Package proto is the root of strake's contract: what crosses a wire.
//
// Data plane: package frame (requests and replies between clients and chunk
// servers) and package stripe (the stripe header, which is stored as it
// travels). Control plane: package pb (protobuf services of the metadata and
// chunk servers). Roles know each other by these packages alone.
package proto
