package qos

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// MaxClasses bounds the classes of a cell, the built-in ones included.
const MaxClasses = 64

// Bounds of service level objectives.
const (
	MinSLO      = 10 * time.Microsecond
	MaxSLO      = time.Hour
	MaxSLOBytes = 16 << 20
)

// SLO is what a class's users are promised: 99 of 100 requests of at most so many
// bytes take no longer. The zero value promises nothing.
type SLO struct {
	P99   time.Duration
	Bytes int64 // 0: of any size
}

// Check refuses what can't be meant. Errors: InvalidArgument.
func (s SLO) Check() error {
	switch {
	case s == SLO{}:
		return nil
	case s.P99 < MinSLO || s.P99 > MaxSLO:
		return refuse("an objective of %v, want %v to %v", s.P99, MinSLO, MaxSLO)
	case s.Bytes < 0 || s.Bytes > MaxSLOBytes:
		return refuse("an objective for requests of %d bytes, want 0 (all) to %d", s.Bytes, MaxSLOBytes)
	}
	return nil
}

// MinLimitBytes is the least limit of a whole cell. Below it work would hang rather
// than go slowly: one piece of 256 KiB takes a second.
const MinLimitBytes = 256 << 10

// CheckLimit refuses a limit that holds work up for ever. It is asked for changes that
// people make; a device's part of a limit, and what is on record, may be less.
// Errors: InvalidArgument.
func (p Params) CheckLimit() error {
	if p.Limit.Bytes > 0 && p.Limit.Bytes < MinLimitBytes {
		return refuse("a limit of %d bytes/s, want at least %d", p.Limit.Bytes, MinLimitBytes).WithHint("0 is no limit")
	}
	return nil
}

// Class is a class as the cell has it.
type Class struct {
	Number layout.Class // 1 to 255
	Name   string
	Params Params
	SLO    SLO
}

// Check refuses a class that can't be meant. Errors: InvalidArgument.
func (c Class) Check() error {
	if c.Number == layout.ClassDefault {
		return refuse("number 0 stands for a volume's default class")
	}
	if err := layout.CheckName("class", c.Name); err != nil {
		return errs.As(err, errs.InvalidArgument, "")
	}
	if err := c.Params.Check(); err != nil {
		return err
	}
	return c.SLO.Check()
}

// Builtin gives the classes that every cell has, as they are while nobody changed
// them.
func Builtin() (list []Class) {
	for n := layout.ClassInference; n <= layout.ClassBackground; n++ {
		list = append(list, Class{Number: n, Name: n.String(), Params: Defaults(n)})
	}
	return list
}

// IsBuiltin tells whether a class is one that can't be removed.
func IsBuiltin(n layout.Class) bool {
	return n >= layout.ClassInference && n <= layout.ClassBackground
}
