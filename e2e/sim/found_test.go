package sim

import "testing"

// found are seeds that failed once, and what they found. A change of the simulator
// gives a seed another history; so each bug has a test of its own where it was.
var found = []struct {
	seed uint64
	what string
}{
	{3, "a recovery took the last cut for the log's start, though a newer root covered more: it found seqs missing"},
	{39, "a create that was held up came after its segment's deletion, and its shard stayed for ever"},
	{103, "a repeated seal of a segment that was deleted meanwhile ended its writer"},
	{2053, "a writer that was deposed while it recovered loaded its successor's stripes into its map"},
	{510074, "a reader that had seen stripes which were not flushed yet failed, once their writer had moved them and their segment was sealed without them"},
	{119, "a device that was given up while its server was only cut off stayed dead for ever"},
	{138, "a recovery's seal named stripes that too few shards had: with one more lost nobody could list them"},
	{170, "the same of copies that the writer had left behind when it moved on"},
	{101508, "the checker held a reader's read by a fresh map against what its old one showed"},
	{400068, "stripes that a snapshot holds were copied by a recovery to a segment younger than it, where its readers did not look"},
	{40539, "a call for segments could not make a shard while an earlier call of the same command, for which the writer had not waited, opened the segment: the writer ended"},
	{511, "a rebuild tried for ever to put a shard beside its own older generation"},
}

func TestFoundSeedsPass(t *testing.T) {
	bench := NewBench()
	defer bench.Close()
	for _, f := range found {
		if r := bench.Run(Options{Seed: f.seed}); r.Err != nil {
			t.Errorf("%s\nit once found: %s", failure(f.seed, &r), f.what)
		}
	}
}
