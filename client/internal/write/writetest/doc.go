// Package writetest is a cell in memory for tests of the write path and of
// recovery: shards that store, lose, sync and crash, a metadata service that
// grants, seals and goes away, messages in any order, and a driver that runs a
// real write.Core on them and checks what it does.
//
// All of it depends on one random source: a seed makes one history.
package writetest
