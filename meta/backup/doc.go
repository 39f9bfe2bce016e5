// Package backup is the format of a backup of a cell's metadata: which cell's and
// from when, the state's snapshot, and a sum over all of it. It is pure encoding: it
// knows neither what the snapshot means nor where a backup lies.
//
// A backup, little-endian, version 1, frozen:
//
//	0        8         12       16       n = 16+length        end-32
//	| magic  | version | length | about ... | snapshot ...    | SHA-256 |
//
// About is JSON. The sum covers everything before it. A backup that was cut short,
// or of which a bit has flipped, is refused as a whole before any of it is used.
package backup
