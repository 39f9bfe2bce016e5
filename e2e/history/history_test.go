package history

import (
	"testing"
	"time"
)

const enough = 10 * time.Second

func TestOverlappingWritesMayComeInAnyOrder(t *testing.T) {
	var l Log
	a, b := l.Write(1, 7, 10), l.Write(2, 7, 20)
	b.Done(0)
	a.Done(0)
	r := l.Read(1, 7)
	r.Done(20)
	if err := l.Check(enough); err != nil || l.Len() != 3 {
		t.Fatalf("%d operations: %v", l.Len(), err)
	}
}

func TestAnOldValueIsFound(t *testing.T) {
	var l Log
	l.Write(1, 7, 10).Done(0)
	l.Write(2, 7, 20).Done(0)
	l.Read(3, 7).Done(10)
	if l.Check(enough) == nil {
		t.Fatal("a read of a value that was written over is taken for linearizable")
	}
}

func TestAWriteThatNeverEndedMayTakePlaceLate(t *testing.T) {
	var l Log
	l.Write(1, 7, 10)
	l.Write(2, 7, 20).Done(0)
	l.Read(3, 7).Done(20)
	l.Read(3, 7).Done(10)
	if err := l.Check(enough); err != nil {
		t.Fatal(err)
	}
	l.Read(3, 7).Done(20)
	if l.Check(enough) == nil {
		t.Fatal("a value that came back is taken for linearizable")
	}
}

func TestARefusedWriteIsNeverSeen(t *testing.T) {
	var l Log
	l.Write(1, 7, 10).Refused()
	l.Read(3, 7).Done(10)
	if l.Check(enough) == nil {
		t.Fatal("the value of a refused write was read")
	}
}

// What clients in other processes noted is judged like what was noted here.
func TestNotesOfOtherProcessesAreOrderedByTheirClock(t *testing.T) {
	check := func(second string) error {
		var l Log
		l.Add(1, "open\nwrite 3 10 100\ndone 10 200\nwrite 3 12 600\nwrite 3 14 700\ndone 14 7")
		l.Add(2, second)
		return l.Check(enough)
	}
	for notes, want := range map[string]bool{
		"read 3 300\ndone 10 400\n":                           true,
		"read 3 150\ndone 0 250\n":                            true,  // they overlap
		"read 3 300\ndone 0 400\n":                            false, // an old value
		"read 3 300\nread 4 500\ndone 0 550\n":                true,  // the first never ended
		"read 3 610\ndone 12 620\nread 3 630\ndone 10 640\n":  false, // a value that came back
		"read 3 800\ndone 14 900\nread 3 910\ndone 12 920\n":  true,  // neither write ended for sure
		"read 3 610\ndone 14 620\n":                           false, // not begun yet
		"read 3 300\ndone 0 4":                                true,  // cut off
		"slow\ndone 9 9\nread 3 300\nwhatever\ndone 10 400\n": true,
	} {
		if err := check(notes); (err == nil) != want {
			t.Errorf("%q: %v", notes, err)
		}
	}
}

// Hundreds of writes that never ended don't make the search endless, and hide nothing.
func TestManyWritesThatNeverEndedAreJudged(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		var l Log
		for i := range uint64(400) {
			l.Write(int(i%3), 1, 1000+2*i)
			l.Write(5, 1, 1001+2*i).Done(0)
			l.Read(6, 1).Done(1001 + 2*i)
			if i%2 == 0 {
				l.Read(7, 1).Done(1000 + 2*i) // the one that never ended took place late
			}
		}
		if wrong {
			l.Read(7, 1).Done(1001)
		}
		if err := l.Check(enough); (err != nil) != wrong {
			t.Fatalf("wrong %v: %v", wrong, err)
		}
	}
}

// TestNotesTakenOneAfterAnother: the second client's were taken later, and hold a read
// of what the first one wrote meanwhile.
func TestNotesTakenOneAfterAnother(t *testing.T) {
	taken := func(until int64) *Log {
		l := &Log{}
		l.Add(0, "write 1 5 10\ndone 5 20\n")
		l.Add(1, "read 1 30\ndone 5 40\nread 1 60\ndone 7 70\n")
		l.Until(until)
		return l
	}
	if l := taken(100); l.Unnoted() != 1 || l.Check(time.Minute) == nil {
		t.Errorf("%d reads of what nobody wrote", l.Unnoted())
	}
	if l := taken(50); l.Unnoted() != 0 || l.Len() != 2 || l.Check(time.Minute) != nil {
		t.Errorf("%d operations, %d reads of what nobody wrote, %v", l.Len(), l.Unnoted(), l.Check(time.Minute))
	}
}
