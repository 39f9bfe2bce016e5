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
