package server

import (
	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// Store is one device's store, as the server uses it; *store.Store is one.
// Its methods are safe for concurrent use. After Failed is closed every call is
// refused.
type Store interface {
	Superblock() format.Superblock
	Incarnation() layout.Incarnation

	Create(spec store.ShardSpec) error
	Append(a store.Append) error
	Sync(epoch layout.Epoch, incarnation layout.Incarnation, shards []frame.ShardRef) error
	Fence(ref frame.ShardRef, epoch layout.Epoch) ([]store.Fenced, error)
	Finalize(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error
	Delete(ref frame.ShardRef) error

	Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error)
	CRCs(ref frame.ShardRef, ranges []frame.ReadRange, dst []uint32) ([]uint32, error)
	Headers(ref frame.ShardRef, ranges []frame.ReadRange) ([][]byte, error)
	List(ref frame.ShardRef, from layout.Seq, most int) (headers []byte, count int, next layout.Seq, err error)
	CheckRecovery(ref frame.ShardRef, epoch layout.Epoch) error
	CheckReader(ref frame.ShardRef, epoch layout.Epoch) error

	Stat(ref frame.ShardRef) (store.Stat, error)
	Each(visit func(store.Stat) bool)
	Usage() store.Usage
	Counters() store.Counters
	Failed() <-chan struct{}
	Err() error
}

var _ Store = (*store.Store)(nil)
