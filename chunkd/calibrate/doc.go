// Package calibrate measures what a device can do in a second, on purpose: bytes
// read and written in long pieces, and reads and writes of 4 KiB.
//
// It owns the procedure and its bounds; not the device, whose scheduler gives each
// piece its turn as background work, so that whatever the device serves meanwhile
// goes first; nor the figure, which its caller keeps. What others moved meanwhile
// counts as done: the device did it.
//
// Four phases take a quarter of the time each, or less when the file has been read
// once, because a second reading would measure the page cache. Pieces are as many at
// a time as keep a device busy, and no phase begins one after its end.
//
// Run is safe for concurrent use on different devices.
package calibrate
