//go:build race

package inprocess

// slow stretches the times of a cell under the race detector.
const slow = 4
