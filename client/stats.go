package client

import "sync/atomic"

// VolumeStats counts what a handle has done since it was opened.
type VolumeStats struct {
	Reads         uint64 `json:"reads"`
	ReadBytes     uint64 `json:"read_bytes"`
	DegradedReads uint64 `json:"degraded_reads"` // reads in which at least one unit was decoded from others
	HedgedReads   uint64 `json:"hedged_reads"`   // reads in which other shards were asked beside a late one
	ShardRequests uint64 `json:"shard_requests"` // sent to chunk servers by reads, those of the map's pages too
	ExtraRequests uint64 `json:"extra_requests"` // of these, for what other shards should have given: to be quicker, or in their place
	ExtraBytes    uint64 `json:"extra_bytes"`    // asked for by these
	CopiedBytes   uint64 `json:"copied_bytes"`   // payload copied between the caller's memory and the volume's own, beside what connections copy
	AheadBytes    uint64 `json:"ahead_bytes"`    // fetched ahead of their readers
	AheadUsed     uint64 `json:"ahead_used"`     // of these, by readers
	Writes        uint64 `json:"writes"`
	WrittenBytes  uint64 `json:"written_bytes"`
	Flushes       uint64 `json:"flushes"`
	Moves         uint64 `json:"moves"`           // stripes that were appended again elsewhere
	AppendedBytes uint64 `json:"appended_bytes"`  // in whole data units, by writes and by cleaning: over WrittenBytes it is the write amplification
	Relocated     uint64 `json:"relocated_bytes"` // of these, by cleaning
	Cleaned       uint64 `json:"segments_cleaned"`
	MapPages      uint64 `json:"map_pages_loaded"`
	MapRoots      uint64 `json:"map_roots"`
	MapMemory     uint64 `json:"map_memory_bytes"` // of the extent map, now
}

type volumeStats struct {
	reads, readBytes, degraded, hedged, writes, writtenBytes, flushes, moves, pages, roots,
	appendedBytes, relocatedBytes, cleaned, aheadBytes, aheadUsed, requests, extraRequests, extraBytes, copiedBytes atomic.Uint64
}

// Stats gives the handle's counters.
func (v *Volume) Stats() VolumeStats {
	v.mu.Lock()
	held := v.tree.MemoryBytes()
	v.mu.Unlock()
	s := &v.stats
	return VolumeStats{
		Reads: s.reads.Load(), ReadBytes: s.readBytes.Load(), DegradedReads: s.degraded.Load(), HedgedReads: s.hedged.Load(),
		Writes: s.writes.Load(), WrittenBytes: s.writtenBytes.Load(), Flushes: s.flushes.Load(), Moves: s.moves.Load(),
		AppendedBytes: s.appendedBytes.Load(), Relocated: s.relocatedBytes.Load(), Cleaned: s.cleaned.Load(),
		ShardRequests: s.requests.Load(), ExtraRequests: s.extraRequests.Load(), ExtraBytes: s.extraBytes.Load(), CopiedBytes: s.copiedBytes.Load(),
		AheadBytes: s.aheadBytes.Load(), AheadUsed: s.aheadUsed.Load(), MapPages: s.pages.Load(), MapRoots: s.roots.Load(),
		MapMemory: uint64(held),
	}
}
