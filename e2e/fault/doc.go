// Package fault harms the network and the disks of containers from the host: by
// rules in a container's network namespace, and by files on its volume.
//
// Every fault has its undoing, Heal, Widen and Free; Heal and Free may be called when there is
// none. Rules stand in the INPUT chain alone, so a rule at one end cuts one way.
package fault
