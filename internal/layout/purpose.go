package layout

// Purpose says what room on a device is wanted for. Of each device a part, the
// reserve, is kept from clients' data, so that a full cell can still delete, discard
// and rebuild; a purpose says how far into it one may go. Numbers are frozen: they
// cross the wire.
type Purpose uint8

// Purposes, the most modest first.
const (
	ForData   Purpose = 0 // what clients write
	ForUpkeep Purpose = 1 // what moves or is made again: rebuild, rebalance, cleaning
	ForNeed   Purpose = 2 // what must go on: map pages, discards, stripes that move, tails of logs
)

// Kept is how many bytes must stay free of a device of so many bytes when room was
// taken for the purpose: a twentieth for data, half of that for upkeep, which so
// never fills the reserve, and a hundredth, for the device's own index, in any case.
func (p Purpose) Kept(total uint64) uint64 {
	switch p {
	case ForUpkeep:
		return total / 40
	case ForNeed:
		return total / 100
	}
	return total / 20
}

// Warn tells whether shards take more than 85 of 100 of what there is for them.
func Warn(room, taken uint64) bool { return taken > room/20*17 }
