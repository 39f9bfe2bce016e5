// Package extent is the extent map of one volume: from blocks to places in
// stripes, kept as a tree of pages that are written as map stripes.
package extent
