package state

import (
	"math"
	"slices"
	"strings"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
)

// ClassRecord is a class in the form that commands and snapshots carry.
type ClassRecord struct {
	Number        layout.Class `cbor:"1,keyasint,omitempty"`
	Name          string       `cbor:"2,keyasint"`
	ReservedBytes int64        `cbor:"3,keyasint,omitempty"` // a second, cell-wide
	ReservedOps   int64        `cbor:"4,keyasint,omitempty"`
	LimitBytes    int64        `cbor:"5,keyasint,omitempty"`
	LimitOps      int64        `cbor:"6,keyasint,omitempty"`
	Weight        int64        `cbor:"7,keyasint,omitempty"`
	TargetNs      int64        `cbor:"8,keyasint,omitempty"`
	SLONs         int64        `cbor:"9,keyasint,omitempty"`
	SLOBytes      int64        `cbor:"10,keyasint,omitempty"`
	Changed       uint64       `cbor:"11,keyasint,omitempty"` // log index of its last change; 0: as built in
}

// RecordOf gives a class's record; Changed stays 0.
func RecordOf(c qos.Class) ClassRecord {
	return ClassRecord{Number: c.Number, Name: c.Name, ReservedBytes: c.Params.Reservation.Bytes, ReservedOps: c.Params.Reservation.Ops,
		LimitBytes: c.Params.Limit.Bytes, LimitOps: c.Params.Limit.Ops, Weight: int64(c.Params.Weight), TargetNs: int64(c.Params.Target),
		SLONs: int64(c.SLO.P99), SLOBytes: c.SLO.Bytes}
}

// Reserved is what the class keeps for itself, beside what jobs reserve in it.
func (r ClassRecord) Reserved() qos.Rate { return qos.Rate{Bytes: r.ReservedBytes, Ops: r.ReservedOps} }

// Class gives the class of a record.
func (r ClassRecord) Class() qos.Class {
	weight := int(min(max(r.Weight, math.MinInt32), math.MaxInt32)) // what does not fit an int is out of bounds too
	return qos.Class{Number: r.Number, Name: r.Name, SLO: qos.SLO{P99: time.Duration(r.SLONs), Bytes: r.SLOBytes},
		Params: qos.Params{Reservation: qos.Rate{Bytes: r.ReservedBytes, Ops: r.ReservedOps}, Limit: qos.Rate{Bytes: r.LimitBytes, Ops: r.LimitOps},
			Weight: weight, Target: time.Duration(r.TargetNs)}}
}

// SetClass changes a class as a whole, or with Add makes one, which gets the
// next free number. Seen is the Changed of the class that the change was made
// from: another change in between is a conflict. Capacity is Reserve's: where the
// class's reservation grows, it is admitted like a job's. Commands of older programs
// have none, and are not held against it.
type SetClass struct {
	ID            CommandID   `cbor:"1,keyasint"`
	Class         ClassRecord `cbor:"2,keyasint"`
	Add           bool        `cbor:"3,keyasint,omitempty"`
	Seen          uint64      `cbor:"4,keyasint,omitempty"`
	CapacityBytes int64       `cbor:"5,keyasint,omitempty" since:"3"` // the leader's part
	CapacityOps   int64       `cbor:"6,keyasint,omitempty" since:"3"`
}

// RemoveClass ends a class that was added. No volume may have it as its default.
type RemoveClass struct {
	ID   CommandID `cbor:"1,keyasint"`
	Name string    `cbor:"2,keyasint"`
}

// Type, CommandID and request: see Command.
func (c SetClass) Type() Type              { return TypeSetClass }
func (c RemoveClass) Type() Type           { return TypeRemoveClass }
func (c SetClass) CommandID() CommandID    { return c.ID }
func (c RemoveClass) CommandID() CommandID { return c.ID }
func (c SetClass) request() Command        { c.CapacityBytes, c.CapacityOps = 0, 0; return c }
func (c RemoveClass) request() Command     { return c }

// firstAdded is the lowest number of an added class.
const firstAdded layout.Class = 16

// since: version 3 numbers classes in a round, so that a class that is added puts its
// number on record.
func (c SetClass) since() uint32 {
	if c.Add {
		return 3
	}
	return firstVersion
}

func (c SetClass) check() error {
	class := c.Class.Class()
	if c.Add {
		if c.Class.Number != 0 {
			return errs.New(errs.InvalidArgument, "add class "+c.Class.Name, "number %d is not for the caller to choose", c.Class.Number)
		}
		class.Number = firstAdded
	}
	if c.Class.Changed != 0 {
		return errs.New(errs.InvalidArgument, "set class "+c.Class.Name, "the time of a change is not for the caller to choose")
	}
	return errs.As(class.Check(), errs.InvalidArgument, "set class %s", c.Class.Name)
}

func (c SetClass) apply(t *tables, r *Result) error {
	op := "set class " + c.Class.Name
	was, known := t.classes.byName(c.Class.Name)
	added := false
	switch {
	case c.Add && known:
		return errs.New(errs.AlreadyExists, "add class "+c.Class.Name, "there is class %d of that name", was.Number).WithHint("`strake class set %s` changes it", was.Name)
	case c.Add:
		number, err := t.classes.freeNumber(t.last.Class)
		if err != nil {
			return err
		}
		c.Class.Number, added = number, true
	case !known:
		return unknownClass(op, c.Class.Name)
	case c.Class.Number != was.Number:
		return errs.New(errs.InvalidArgument, op, "it has number %d, not %d", was.Number, c.Class.Number)
	case c.Seen != was.Changed:
		return errs.New(errs.Conflict, op, "it was changed at log index %d, after %d", was.Changed, c.Seen).WithHint("look at it again")
	}
	if err := c.admit(t, op, was.Reserved()); err != nil {
		return err
	}
	if added {
		t.last.Class = c.Class.Number
	}
	c.Class.Changed = t.applied
	t.setClass(c.Class)
	r.emit(ClassChanged{Class: c.Class.Number, Name: c.Class.Name})
	return nil
}

// admit holds a reservation that grows against what is not reserved. had is what the
// class has now.
func (c SetClass) admit(t *tables, op string, had qos.Rate) error {
	capacity, want := qos.Rate{Bytes: c.CapacityBytes, Ops: c.CapacityOps}, c.Class.Reserved()
	if capacity.IsZero() || want.Bytes <= had.Bytes && want.Ops <= had.Ops {
		return nil
	}
	others := t.reserved()
	others = qos.Rate{Bytes: others.Bytes - had.Bytes, Ops: others.Ops - had.Ops}
	return admitted(op, want, capacity, others)
}

func (c RemoveClass) check() error {
	return errs.As(layout.CheckName("class", c.Name), errs.InvalidArgument, "remove class")
}

func (c RemoveClass) apply(t *tables, r *Result) error {
	op := "remove class " + c.Name
	was, ok := t.classes.byName(c.Name)
	switch {
	case !ok:
		return unknownClass(op, c.Name)
	case qos.IsBuiltin(was.Number):
		return errs.New(errs.InvalidArgument, op, "it is built in").WithHint("`strake class set %s` changes it", c.Name)
	}
	var user *Volume
	t.volumes.Scan(func(_ layout.VolumeID, v *Volume) bool {
		if v.Class == was.Number && !v.Purged {
			user = v
		}
		return user == nil
	})
	if user != nil {
		return errs.New(errs.Busy, op, "it is the default of volume %s", user.path()).WithHint("remove the volumes of the class first, also for ever")
	}
	for _, res := range t.reservations {
		if res.Class == was.Number {
			return errs.New(errs.Busy, op, "job %s has a reservation in it", res.Job).WithHint("`strake reserve rm %s` ends it", res.Job)
		}
	}
	t.classes = slices.DeleteFunc(slices.Clone(t.classes), func(c ClassRecord) bool { return c.Number == was.Number })
	t.qosChanged = t.applied
	r.emit(ClassRemoved{Class: was.Number, Name: c.Name})
	return nil
}

func unknownClass(op, name string) error {
	return errs.New(errs.NotFound, op, "there is no class of that name (%s)", name).WithHint("`strake class ls` lists them")
}

// classTable are the classes that differ from what is built in, by number. It is
// replaced, never changed in place: views share it.
type classTable []ClassRecord

// all gives every class, those as built in too, by number.
func (list classTable) all() []ClassRecord {
	out := slices.Clone(list)
	for _, b := range qos.Builtin() {
		if _, changed := list.byNumber(b.Number); !changed {
			out = append(out, RecordOf(b))
		}
	}
	slices.SortFunc(out, func(a, b ClassRecord) int { return int(a.Number) - int(b.Number) })
	return out
}

func (list classTable) byNumber(n layout.Class) (ClassRecord, bool) {
	i := slices.IndexFunc(list, func(c ClassRecord) bool { return c.Number == n })
	if i < 0 {
		return ClassRecord{}, false
	}
	return list[i], true
}

// byName finds a class, built in or not.
func (list classTable) byName(name string) (ClassRecord, bool) {
	all := list.all()
	i := slices.IndexFunc(all, func(c ClassRecord) bool { return c.Name == name })
	if i < 0 {
		return ClassRecord{}, false
	}
	return all[i], true
}

// reserved is what classes keep for themselves; none that is built in does unless it
// was changed.
func (list classTable) reserved() (sum qos.Rate) {
	for _, c := range list {
		sum = sum.Plus(c.Reserved())
	}
	return sum
}

// freeNumber gives the next free number after the last that was given, round and round:
// handles and caches that still have a removed class's number must not meet another
// class by it soon.
func (list classTable) freeNumber(last layout.Class) (layout.Class, error) {
	all := list.all()
	if len(all) >= qos.MaxClasses {
		return 0, errs.New(errs.Overloaded, "add class", "there are %d classes", len(all)).WithHint("remove one that nothing uses")
	}
	next := func(n layout.Class) layout.Class { return max(n+1, firstAdded) } // after 255 comes 0
	n := next(last)
	for slices.ContainsFunc(all, func(c ClassRecord) bool { return c.Number == n }) {
		n = next(n)
	}
	return n, nil
}

// setClass puts a class's record.
func (t *tables) setClass(c ClassRecord) {
	list := slices.DeleteFunc(slices.Clone(t.classes), func(old ClassRecord) bool { return old.Number == c.Number })
	list = append(list, c)
	slices.SortFunc(list, func(a, b ClassRecord) int { return int(a.Number) - int(b.Number) })
	t.classes, t.qosChanged = list, t.applied
}

// checkClass tells whether a class's number is known; 0 is each volume's default.
func (t *tables) checkClass(op string, n layout.Class) error {
	if _, ok := t.classes.byNumber(n); ok || n == layout.ClassDefault || qos.IsBuiltin(n) {
		return nil
	}
	return errs.New(errs.NotFound, op, "there is no class %d", n).WithHint("`strake class ls` lists them")
}

// check refuses a table that no commands make.
func (list classTable) check() error {
	names := map[string]bool{}
	last := layout.Class(0)
	for _, c := range list {
		if c.Class().Check() != nil || c.Number <= last || c.Changed == 0 || !qos.IsBuiltin(c.Number) && c.Number < firstAdded ||
			qos.IsBuiltin(c.Number) && c.Name != c.Number.String() {
			return errs.New(errs.Internal, "check classes", "I11: class %d %q after %d, changed at %d", c.Number, c.Name, last, c.Changed)
		}
		last = c.Number
	}
	for _, c := range list.all() {
		if names[c.Name] {
			return errs.New(errs.Internal, "check classes", "I11: two classes are called %s", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// Classes gives every class by number.
func (v *View) Classes() []ClassRecord { return v.t.classes.all() }

// ClassByName finds a class. Error: NotFound.
func (v *View) ClassByName(name string) (ClassRecord, error) {
	c, ok := v.t.classes.byName(strings.TrimSpace(name))
	if !ok {
		return c, unknownClass("look up class "+name, name)
	}
	return c, nil
}

// ClassByNumber finds a class.
func (v *View) ClassByNumber(n layout.Class) (ClassRecord, bool) {
	if c, ok := v.t.classes.byNumber(n); ok || !qos.IsBuiltin(n) {
		return c, ok
	}
	return RecordOf(qos.Class{Number: n, Name: n.String(), Params: qos.Defaults(n)}), true
}

// QoSChanged is the log index of the last change of a class or reservation.
func (v *View) QoSChanged() uint64 { return v.t.qosChanged }
