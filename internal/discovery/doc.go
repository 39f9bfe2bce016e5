// Package discovery finds cells through etcd: `etcd://HOST:PORT[,HOST:PORT...]/CELL`.
//
// A Registrar lists a metadata server there for as long as it runs and settles
// who forms a new cell; a Follower tells which metadata servers a cell has and
// follows changes; Cells is the fleet's directory. Under the prefix /strake:
//
//	/strake/cells/CELL/meta/HOST:PORT  a metadata server, an endpoint of etcd's gRPC naming, under its lease
//	/strake/cells/CELL/founders        the addresses that form the cell, sorted, comma-separated; written once
//	/strake/cells/CELL/id              the cell's id, 16 hex digits; written once
//
// D1. etcd is asked where a cell is, never what is true of it. Who is a member,
// who leads and what a volume holds, the cell's own log says. So losing etcd, or
// all of its content, stops nothing that runs: a Follower keeps the last
// addresses that it knew, a Registrar lists its server again.
//
// D2. The founders of a cell are settled by one transaction: the first server
// that sees as many as are wanted writes their list, the others take it as it is.
// The list only stands in for a list of peers that a person gives: the cell then
// forms by the rules of package meta, which refuse to form it twice even when
// etcd lost its content.
//
// D3. A name belongs to the first cell that took it. A metadata server of another
// cell is not listed under it and says so.
//
// Each Registrar and each Follower has one goroutine, which its Close waits for,
// and one etcd client; etcd's own goroutines end with that.
package discovery
