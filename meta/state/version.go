package state

import (
	"reflect"
	"strconv"
)

// Version counts what a program knows of commands and of the state. Whoever adds a
// type, a field or a value raises it by one and marks what is new with that number:
//
//   - a type of command has a method `since() uint32`; so has one with a new value in
//     an old field, which gives the number when the value is set;
//   - a field, of a command or of a record of the state, has the tag `since:"N"`, and
//     is left out while it is zero;
//   - the new shapes are listed in testdata (`go test ./meta/state -rewrite`).
//
// What stands is never changed otherwise: a command that is to do something else is a
// new type, or has a field that says so.
//
// A command is written under the lowest version that knows all that is in it, and the
// state takes the highest version of the commands that changed it, which its snapshots
// carry. So a program of version N reads all that programs of lower versions wrote, and
// refuses, with the kind Version, exactly what it does not know. A leader proposes a
// command of a version that the state does not have yet only when all members read it.
//
// Version 1 grew until 2 began to be counted: commands of both are under 1.
const Version = 4

// FirstCounted is the lowest version that a state has: from there on they are counted.
const FirstCounted = 2

// firstVersion is that of the commands that were there before versions were counted.
const firstVersion = 1

// newer is a command that programs of lower versions don't know, by its type or by a
// value in it.
type newer interface{ since() uint32 }

// Since gives the lowest version whose programs know all that is in the command.
func Since(cmd Command) uint32 {
	v := uint32(firstVersion)
	if n, ok := cmd.(newer); ok {
		v = n.since()
	}
	if kinds[cmd.Type()].marked {
		v = max(v, newestIn(reflect.ValueOf(cmd)))
	}
	return v
}

// newestIn gives the highest version of the fields that are set in a value.
func newestIn(v reflect.Value) (version uint32) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				version = max(version, sinceField(v.Type().Field(i)), newestIn(f))
			}
		}
	case reflect.Slice, reflect.Array:
		if !hasMarks(v.Type().Elem()) {
			return 0
		}
		for i := range v.Len() {
			version = max(version, newestIn(v.Index(i)))
		}
	}
	return version
}

// hasMarks tells whether fields of a type, or of what it is made of, have versions.
func hasMarks(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return hasMarks(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); sinceField(f) > firstVersion || hasMarks(f.Type) {
				return true
			}
		}
	}
	return false
}

// sinceField is the version that brought a field.
func sinceField(f reflect.StructField) uint32 {
	n, err := strconv.ParseUint(f.Tag.Get("since"), 10, 32)
	if err != nil {
		return firstVersion
	}
	return uint32(n)
}
