//go:build !planted

package planted

// Possible tells whether this build can have bugs planted.
const Possible = false

// Is tells whether a bug is planted: no bug is.
func Is(Bug) bool { return false }

// Plant does nothing in this build.
func Plant(Bug) {}
