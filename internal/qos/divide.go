package qos

// floorPart: of so many parts of an even share each device has one at least, so
// that work which comes to an idle device finds something before the next division.
const floorPart = 50

// Divide divides a figure for the whole cell (a reservation, a limit) among
// devices by what each was asked for lately, in the same unit. The parts add up to
// the total when it is at least one a device; a device gets at least a fiftieth of an
// even share, and all of them even shares while nobody asks.
func Divide(total int64, demand []int64) []int64 {
	n := int64(len(demand))
	parts := make([]int64, n)
	if n == 0 || total <= 0 {
		return parts
	}
	sum := 0.0
	for _, d := range demand {
		sum += float64(max(0, d))
	}
	least := max(1, total/n/floorPart)
	rest := max(0, total-least*n)
	left, last := rest, 0
	for i, d := range demand {
		share := rest / n
		if sum > 0 {
			share = int64(float64(rest) * (float64(max(0, d)) / sum))
		}
		share = min(share, left)
		if parts[i] = least + share; d > demand[last] {
			last = i
		}
		left -= share
	}
	parts[last] += left // of rounding
	return parts
}

// Divide divides both units, each by its own demand.
func (r Rate) Divide(demand []Rate) []Rate {
	bytes, ops := make([]int64, len(demand)), make([]int64, len(demand))
	for i, d := range demand {
		bytes[i], ops[i] = d.Bytes, d.Ops
	}
	parts := make([]Rate, len(demand))
	for i, b := range Divide(r.Bytes, bytes) {
		parts[i].Bytes = b
	}
	for i, o := range Divide(r.Ops, ops) {
		parts[i].Ops = o
	}
	return parts
}
