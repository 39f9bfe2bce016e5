// Package stripe is the codec of the stripe header: the record that every
// participant of a stripe stores beside its unit, and that alone says what a
// unit is.
//
// The header travels in Append frames and is stored as it came. Version 1,
// little-endian, frozen:
//
//	 0  4  magic "SKH1"
//	 4  1  version (1)
//	 5  1  flags: 1 relocation, 2 map page
//	 6  1  k        7  1  m
//	 8  1  shard    9  3  zero
//	12  4  length of the whole header, this field and the CRC included
//	16  8  cell
//	24  8  volume
//	32  8  segment
//	40  8  epoch
//	48  8  seq
//	56  8  flushed   (the writer's flushed seq when the stripe was cut)
//	64  8  offset    (bytes, the same in every shard)
//	72  4  unit      (bytes per participant; 0: no payload)
//	76  4  data mask (data shards that hold bytes; others read as zeros)
//	80  4  payload blocks
//	84  4  number of ranges r
//	88 16r ranges: block (8), count (4), kind (1), zero (3)
//	 .. 4c CRC32C of each 4 KiB block of each participant's unit, participants
//	       ascending (parity too), blocks ascending; c = participants x unit/4096
//	 ..  4 CRC32C of all bytes before
//
// Payload blocks fill the data shards of the mask in ascending order; what is
// left of the last unit is zeros. The payload is the write ranges' blocks one
// after another; discard and zero ranges carry none.
//
// Only `shard` differs between the participants of a stripe (and with it the
// header's CRC), so that a header found in the wrong shard is refused.
package stripe
