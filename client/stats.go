package client

import "sync/atomic"

// VolumeStats counts what a handle has done since it was opened.
type VolumeStats struct {
	Reads         uint64 `json:"reads"`
	ReadBytes     uint64 `json:"read_bytes"`
	DegradedReads uint64 `json:"degraded_reads"` // reads in which at least one unit was decoded from others
	HedgedReads   uint64 `json:"hedged_reads"`   // reads in which other shards were asked beside a late one
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
}

type volumeStats struct {
	reads, readBytes, degraded, hedged, writes, writtenBytes, flushes, moves, pages, roots,
	appendedBytes, relocatedBytes, cleaned, aheadBytes, aheadUsed atomic.Uint64
}

// Stats gives the handle's counters.
func (v *Volume) Stats() VolumeStats {
	s := &v.stats
	return VolumeStats{
		Reads: s.reads.Load(), ReadBytes: s.readBytes.Load(), DegradedReads: s.degraded.Load(), HedgedReads: s.hedged.Load(),
		Writes: s.writes.Load(), WrittenBytes: s.writtenBytes.Load(), Flushes: s.flushes.Load(), Moves: s.moves.Load(),
		AppendedBytes: s.appendedBytes.Load(), Relocated: s.relocatedBytes.Load(), Cleaned: s.cleaned.Load(),
		AheadBytes: s.aheadBytes.Load(), AheadUsed: s.aheadUsed.Load(), MapPages: s.pages.Load(), MapRoots: s.roots.Load(),
	}
}
