package qos

import "math/bits"

const (
	// Whole is all the time of all devices, in the parts that Part counts in.
	Whole = 1_000_000
	// far is more than any time, and two of it still fit an int64.
	far = 1 << 60
)

// Part is how much of the devices' time work at a rate takes, in millionths and
// rounded up, when capacity is the most bytes a second or the most operations a second
// that they do: bytes and operations take the time from each other. Up to Whole fits;
// what there is no capacity for never does.
func Part(want, capacity Rate) int64 {
	return partOf(want.Bytes, capacity.Bytes) + partOf(want.Ops, capacity.Ops)
}

func partOf(want, have int64) int64 {
	switch {
	case want <= 0:
		return 0
	case have <= 0 || want/have >= far/Whole:
		return far
	}
	hi, lo := bits.Mul64(uint64(want%have), Whole)
	part, rest := bits.Div64(hi, lo, uint64(have))
	if rest > 0 {
		part++
	}
	return want/have*Whole + int64(part)
}

// scaled is n times a divided by b, rounded down; n or a is at most b.
func scaled(n, a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(a))
	q, _ := bits.Div64(hi, lo, uint64(b))
	return int64(q)
}

// Free is what is left of a capacity beside what is reserved, of each unit while
// nothing of the other is taken. It fits.
func Free(capacity, reserved Rate) Rate {
	left := left(capacity, reserved)
	return Rate{Bytes: scaled(max(0, capacity.Bytes), left, Whole), Ops: scaled(max(0, capacity.Ops), left, Whole)}
}

// Short is what of a wanted rate does not fit beside what is reserved; zero: it fits.
func Short(want, capacity, reserved Rate) Rate {
	part, left := Part(want, capacity), left(capacity, reserved)
	switch {
	case part <= left:
		return Rate{}
	case part >= far:
		return want
	}
	return Rate{Bytes: want.Bytes - scaled(want.Bytes, left, part), Ops: want.Ops - scaled(want.Ops, left, part)}
}

// left is the time that is not reserved.
func left(capacity, reserved Rate) int64 { return max(0, Whole-Part(reserved, capacity)) }

// Plus adds two rates.
func (r Rate) Plus(o Rate) Rate { return Rate{Bytes: r.Bytes + o.Bytes, Ops: r.Ops + o.Ops} }
