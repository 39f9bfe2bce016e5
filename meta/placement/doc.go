// Package placement chooses the devices of a segment.
//
// It owns the rules: distinct failure domains, weights by free space and load,
// bounded scatter, narrowing, and the growth of segments. It owns no state and
// no randomness: a cluster and a source go in, devices come out, and the same
// cluster and the same numbers give the same devices.
//
// # Failure domains
//
// A server's domain is a path, outermost first: zone/rack/host. Inside it come
// the server and the device. Shards of a segment take distinct domains of the
// widest level that has enough of them: zones where there are k+m zones, else
// racks, and so on down to servers. Only a cell of one server, which is a
// development cell, goes down to devices. A server without a domain is its own.
//
// # Narrowing
//
// When too few servers can take shards, k narrows one by one; m never does, so
// every stripe still has m+1 participants on m+1 servers. Fewer than m+1 is
// refused: Frozen where servers are missing, NoSpace where space is.
//
// # Copysets
//
// With free choice, every set of m+1 devices soon has a segment across it, and
// any loss of m+1 devices at once loses data. Following A. Cidon et al.,
// "Copysets: Reducing the Frequency of Data Loss in Cloud Storage" (USENIX ATC
// 2013), segments are placed on few sets of devices instead: P permutations of
// all devices are each cut into groups of k+m with distinct domains, and a
// segment takes one group. A device then shares segments with at most about
// P*(k+m-1) others (its scatter width), which is also how many servers rebuild
// it in parallel; and only the sets of m+1 devices inside one of P*N/(k+m) groups
// lose data together. P is chosen so that the scatter width is about Scatter.
//
// The permutations come from hashes of device ids, not from the random source:
// all leaders cut alike, and a device that comes or goes changes only the
// groups after it. What is left at a permutation's end is completed from its
// head, so a device is in one group of a permutation, or in two. A
// member that can't take shards now is replaced by the next in the permutation
// that can, so an outage widens the scatter only by neighbours.
//
// Among groups the choice is random, weighted by the least weight of a member,
// free bytes times idleness: a full or busy device slows its groups down. Of a
// few groups drawn so, the emptiest takes the segment, and the cluster levels
// itself.
package placement
