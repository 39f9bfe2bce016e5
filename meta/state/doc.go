// Package state is the metadata service's state machine.
package state
