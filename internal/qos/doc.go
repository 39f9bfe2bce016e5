// Package qos holds what the metadata service, the chunk servers and the command
// share of quality of service: what a class is, which ones are built in, which
// figures can be meant, and how a figure for the whole cell is divided among its
// devices. It is pure.
//
// A class's reservation and limit are for the whole cell: the limit for each tenant's
// work in the class, the reservation for all of it; weight and latency target hold on each device. Device schedulers
// (chunkd/sched/mclock) work with Params too, then with a device's part of them.
package qos
