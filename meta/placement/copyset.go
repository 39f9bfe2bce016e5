package placement

import (
	"cmp"
	"slices"

	"strake/internal/layout"
)

// DefaultScatter is the least scatter width: how many others a device shares
// segments with, and so how many help to rebuild it.
const DefaultScatter = 24

// permutations gives P for a width of n shards.
func permutations(scatter, n int) int { return max(1, (scatter+n-2)/max(1, n-1)) }

// copysets are the groups of one width at one level: positions of devices, and
// for each group the permutation and where it began there.
type copysets struct {
	orders [][]int // permutations of device positions
	groups []group
}

type group struct {
	members []int
	order   int // which permutation
}

// cut makes the copysets of width n with distinct domains. Devices that can't
// take shards just now are part of them, so that the groups stay when devices
// come back. It gives no groups when there are too few domains.
func cut(c *Cluster, at domains, n, scatter int) copysets {
	var sets copysets
	if at.count < n {
		return sets
	}
	for p := range permutations(scatter, n) {
		order := permute(c, p)
		sets.orders = append(sets.orders, order)
		for _, members := range partition(order, at.of, n) {
			sets.groups = append(sets.groups, group{members, p})
		}
	}
	return sets
}

// permute orders the devices by a hash of permutation and id.
func permute(c *Cluster, p int) []int {
	order := make([]int, len(c.Devices))
	keys := make([]uint64, len(c.Devices))
	for i := range order {
		order[i], keys[i] = i, mix(uint64(c.Devices[i].ID)^mix(uint64(p)+1))
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(c.Devices[a].ID, c.Devices[b].ID))
	})
	return order
}

// mix is the finisher of splitmix64: every input bit moves every output bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// partition cuts an order into groups of n with distinct domains: each takes
// the first devices that are left and fit. What is left over at the end is
// completed from the head.
func partition(order []int, of []int, n int) (groups [][]int) {
	left := slices.Clone(order)
	for len(left) > 0 {
		members, rest := take(nil, left, of, n)
		if len(members) < n {
			members, _ = take(members, order, of, n)
		}
		if len(members) < n {
			return groups // can't be: the level has n domains
		}
		groups = append(groups, members)
		left = rest
	}
	return groups
}

// take adds devices of the list to members until there are n, skipping those
// whose domain is taken; rest is the list without those it took.
func take(members, list []int, of []int, n int) (taken, rest []int) {
	for i, d := range list {
		if len(members) == n {
			return members, append(rest, list[i:]...)
		}
		if slices.ContainsFunc(members, func(m int) bool { return of[m] == of[d] }) {
			rest = append(rest, d)
			continue
		}
		members = append(members, d)
	}
	return members, rest
}

// ScatterBound is the most devices that one device shares segments with in a
// cluster of which every device takes shards.
func ScatterBound(g layout.Geometry, scatter int) int {
	if scatter == 0 {
		scatter = DefaultScatter
	}
	return 2 * permutations(scatter, g.Shards()) * (g.Shards() - 1)
}
