package state

// Encode gives a command's bytes; the same command gives the same bytes.
func Encode(cmd Command) []byte { return nil }

// Decode reads a command. Unknown types, versions and fields are refused, never
// skipped: a server that does not know a command must not apply the log past it.
func Decode(b []byte) (Command, error) { return nil, nil }
