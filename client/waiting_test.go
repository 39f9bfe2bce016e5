package client

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWhatIsWaitedForIsToldAfter5SecondsThenLessOften, and anew when it came and is
// waited for again.
func TestWhatIsWaitedForIsToldAfter5SecondsThenLessOften(t *testing.T) {
	var told []string
	tell := tellings{}
	second := func(at int, list ...Waiting) {
		for _, one := range tell.due(list) {
			told = append(told, fmt.Sprintf("%d:%s", at, one.Op))
		}
	}
	for s := 1; s <= 200; s++ {
		second(s, Waiting{Op: "a", For: time.Duration(s) * time.Second})
	}
	second(201)
	for s := 202; s < 210; s++ {
		second(s, Waiting{Op: "a", For: time.Duration(s-201) * time.Second}, Waiting{Op: "b", For: time.Second})
	}
	want := "5:a 10:a 20:a 40:a 80:a 140:a 200:a 206:a"
	if got := strings.Join(told, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
