package layout

// Held says what the snapshots of a branch hold of its log.
type Held struct {
	Newest Seq // of the newest snapshot; 0: there is none
	// Outlived is the seq of the newest snapshot that was removed as the oldest that
	// there was; 0: none is known. All that stand are newer.
	Outlived Seq
}

// Holds tells whether a snapshot needs a data segment that begins at a seq, as long as
// the head names it.
func (h Held) Holds(first Seq) bool { return first <= h.Newest }

// Rolls tells, of a segment that is held, whether the snapshots that hold it are likely
// to go by themselves. Where snapshots are taken and removed in turn the newest always
// holds what is old: were that left alone, no block of it would come back before all
// have been overwritten. A snapshot that is meant to last stays the oldest, and nothing
// at or before it rolls.
func (h Held) Rolls(first Seq) bool { return h.Holds(first) && first <= h.Outlived }
