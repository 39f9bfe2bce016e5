package state

import (
	"errors"
	"fmt"
	"testing"

	"strake/internal/errs"
	"strake/internal/qos"
)

// TestClassesAndReservationsAreBounded, each by its number.
func TestClassesAndReservationsAreBounded(t *testing.T) {
	s := New()
	index, id := uint64(0), CommandID(0)
	apply := func(c Command) error {
		index++
		return s.Apply(index, c).Err
	}
	if err := apply(FormCell{Cell: 1}); err != nil {
		t.Fatal(err)
	}
	n := len(s.View().Classes())
	for ; ; n++ {
		id++
		err := apply(SetClass{ID: id, Add: true, Class: ClassRecord{Name: fmt.Sprintf("c%d", n), Weight: 1}})
		if errors.Is(err, errs.Overloaded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != qos.MaxClasses {
		t.Errorf("%d classes fit, want %d", n, qos.MaxClasses)
	}
	jobs := 0
	for ; ; jobs++ {
		err := apply(Reserve{Joint: true, CapacityOps: 1 << 30, Reservation: Reservation{Job: fmt.Sprint(jobs), Class: 2, Ops: 1, TTLNs: 1e9}})
		if errors.Is(err, errs.Overloaded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if jobs != MaxReservations {
		t.Errorf("%d reservations fit, want %d", jobs, MaxReservations)
	}
	if err := s.View().Check(); err != nil {
		t.Error(err)
	}
}

// TestAClassesNumberComesRoundAgain only after all others, also past the highest.
func TestAClassesNumberComesRoundAgain(t *testing.T) {
	s, seen := New(), map[uint64]bool{}
	index := uint64(1)
	if err := s.Apply(index, FormCell{Cell: 1}).Err; err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		index++
		if err := s.Apply(index, SetClass{ID: CommandID(index), Add: true, Class: ClassRecord{Name: "c", Weight: 1}}).Err; err != nil {
			t.Fatal(err)
		}
		c, err := s.View().ClassByName("c")
		if err != nil {
			t.Fatal(err)
		}
		if want := 16 + uint64(i)%240; uint64(c.Number) != want {
			t.Fatalf("class %d got number %d, want %d", i, c.Number, want)
		}
		seen[uint64(c.Number)] = true
		index++
		if err := s.Apply(index, RemoveClass{ID: CommandID(index), Name: "c"}).Err; err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 240 {
		t.Errorf("%d numbers were given", len(seen))
	}
}
