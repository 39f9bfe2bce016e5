package client

import (
	"context"
	"strings"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/pb"
)

// Rate is an amount a second; zero leaves a unit out.
type Rate struct {
	Bytes int64 `json:"bytes_per_s"`
	Ops   int64 `json:"ops_per_s"`
}

// Class is a quality-of-service class. Reservation and limit are for the whole
// cell, of each tenant's work in the class.
type Class struct {
	Number      uint32        `json:"number"`
	Name        string        `json:"name"`
	Builtin     bool          `json:"builtin"`
	Weight      int64         `json:"weight"` // share of what is not reserved, against all others'
	Reservation Rate          `json:"reservation"`
	Limit       Rate          `json:"limit"`
	Target      time.Duration `json:"target_ns"` // of one request at a device while the class is in use; 0: none
	SLO         time.Duration `json:"slo_p99_ns"`
	SLOBytes    int64         `json:"slo_bytes"` // the objective is for requests of at most that; 0: any
	Changed     uint64        `json:"changed"`   // names this version of the class; 0: as built in
}

// Classes gives the cell's classes by number.
func (c *Cell) Classes(ctx context.Context) ([]Class, error) {
	r, err := call(ctx, c, "list classes", func(ctx context.Context, m pb.MetaClient) (*pb.ListClassesReply, error) {
		return m.ListClasses(ctx, &pb.ListClassesRequest{})
	})
	var list []Class
	for _, p := range r.GetClasses() {
		list = append(list, classOf(p))
	}
	return list, err
}

// Class finds a class. Error: ErrNotFound.
func (c *Cell) Class(ctx context.Context, name string) (Class, error) {
	list, err := c.Classes(ctx)
	if err != nil {
		return Class{}, err
	}
	var names []string
	for _, one := range list {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return Class{}, errs.New(errs.NotFound, "look up class "+name, "there is no class of that name").WithHint("the classes are %s", strings.Join(names, ", "))
}

// SetClass changes a class as a whole, from the version that Changed names. Every
// chunk server has it within a second. Errors: ErrInvalidArgument naming the
// figure, ErrNotFound, ErrConflict when it was changed meanwhile.
func (c *Cell) SetClass(ctx context.Context, class Class) (Class, error) {
	return c.setClass(ctx, "set class "+class.Name, class, false)
}

// AddClass makes a class; the cell chooses its number. Errors: ErrInvalidArgument,
// ErrExists, ErrOverloaded when there are too many.
func (c *Cell) AddClass(ctx context.Context, class Class) (Class, error) {
	class.Number, class.Changed = 0, 0
	return c.setClass(ctx, "add class "+class.Name, class, true)
}

func (c *Cell) setClass(ctx context.Context, op string, class Class, add bool) (Class, error) {
	request := &pb.SetClassRequest{Command: newCommand(), Add: add, Class: &pb.QosClass{Number: class.Number, Name: class.Name,
		Reservation: rateToPB(class.Reservation), Limit: rateToPB(class.Limit), Weight: class.Weight, TargetNs: int64(class.Target),
		SloNs: int64(class.SLO), SloBytes: class.SLOBytes, Changed: class.Changed}}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.SetClassReply, error) {
		return m.SetClass(ctx, request)
	})
	return classOf(r.GetClass()), err
}

// RemoveClass ends a class that was added. Errors: ErrNotFound, ErrInvalidArgument
// for one that is built in, ErrBusy while a volume or a reservation is in it.
func (c *Cell) RemoveClass(ctx context.Context, name string) error {
	request := &pb.RemoveClassRequest{Command: newCommand(), Name: name}
	_, err := call(ctx, c, "remove class "+name, func(ctx context.Context, m pb.MetaClient) (*pb.RemoveClassReply, error) {
		return m.RemoveClass(ctx, request)
	})
	return err
}

func classOf(p *pb.QosClass) Class {
	return Class{Number: p.GetNumber(), Name: p.GetName(), Builtin: p.GetBuiltin(), Weight: p.GetWeight(), Reservation: rateFromPB(p.GetReservation()),
		Limit: rateFromPB(p.GetLimit()), Target: time.Duration(p.GetTargetNs()), SLO: time.Duration(p.GetSloNs()), SLOBytes: p.GetSloBytes(), Changed: p.GetChanged()}
}

func rateToPB(r Rate) *pb.Rate { return &pb.Rate{Bytes: r.Bytes, Ops: r.Ops} }

func rateFromPB(r *pb.Rate) Rate { return Rate{r.GetBytes(), r.GetOps()} }

// classNumber gives a class's number by its name; "" is training. Only classes that
// are not built in are asked for.
func (c *Cell) classNumber(ctx context.Context, op, name string) (uint32, error) {
	if name == "" {
		name = layout.ClassTraining.String()
	}
	for _, b := range qos.Builtin() {
		if b.Name == name {
			return uint32(b.Number), nil
		}
	}
	class, err := c.Class(ctx, name)
	if errs.KindOf(err) == errs.NotFound {
		return 0, errs.New(errs.InvalidArgument, op, "no class %q", name).WithHint("%s", errs.HintOf(err))
	}
	return class.Number, errs.Wrap(err, "%s", op)
}

// knownClass is classNumber for every read: a class that is not built in is asked for
// once. A name must be given.
func (c *Cell) knownClass(ctx context.Context, op, name string) (layout.Class, error) {
	if n, ok := c.classes.Load(name); ok {
		return n.(layout.Class), nil
	}
	if name == "" {
		return 0, errs.New(errs.InvalidArgument, op, "no class is named").WithHint("name one: see `strake class ls`")
	}
	n, err := c.classNumber(ctx, op, name)
	if err != nil {
		return 0, err
	}
	c.classes.Store(name, layout.Class(n))
	return layout.Class(n), nil
}
