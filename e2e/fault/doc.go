// Package fault harms the network and the disks of containers from the host: by
// rules in a container's network namespace, and by files on its volume.
//
// Every fault has its undoing, Heal and Free; both may be called when there is
// none. Rules stand in the INPUT chain alone, so a rule at one end cuts one way.
package fault
