// Package errs holds the error kinds that cross strake's wires.
//
// An error has an operation, a kind and a cause. A kind tells the caller what
// to do, is the same at both ends of a connection, and its number is frozen:
// kinds are only ever appended. Test a kind with Is; read identity and advice
// with errors.As on *Error. The package is pure and imports nothing of strake.
package errs
