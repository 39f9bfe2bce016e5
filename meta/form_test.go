package meta

import "testing"

func TestWhatAServerWithoutStateDoes(t *testing.T) {
	peers := []string{"a:1", "b:1", "c:1"}
	empty := func(addr string) peerView {
		return peerView{address: addr, id: addr, empty: true, peers: peers}
	}
	with := func(v peerView, change func(*peerView)) peerView {
		change(&v)
		return v
	}
	silent := func(v *peerView) { v.silent = "refused" }
	formed := func(v *peerView) { v.empty, v.formed = false, true }
	state := func(v *peerView) { v.empty = false }
	wiped := func(v *peerView) { v.empty, v.wiped = false, true }
	others := func(v *peerView) { v.peers = []string{"a:1", "b:1"} }
	renamed := func(v *peerView) { v.id = "x:1" }
	alone := func(v *peerView) { v.peers = []string{"b:1", "c:1"} }
	a, b, c := empty("a:1"), empty("b:1"), empty("c:1")
	for name, test := range map[string]struct {
		self   peerView
		others []peerView
		want   step
	}{
		"the first of all empty ones forms":         {a, []peerView{b, c}, stepForm},
		"the others wait for it, started":           {b, []peerView{a, c}, stepJoin},
		"a single one forms":                        {with(a, func(v *peerView) { v.peers = []string{"a:1"} }), nil, stepForm},
		"one is silent":                             {a, []peerView{b, with(c, silent)}, stepWait},
		"one is silent, one knows a cell":           {a, []peerView{with(b, formed), with(c, silent)}, stepAsk},
		"one is silent before it, one knows a cell": {a, []peerView{with(b, silent), with(c, formed)}, stepAsk},
		"one knows a cell":                          {a, []peerView{b, with(c, formed)}, stepAsk},
		"the cell is being formed":                  {b, []peerView{with(a, state), c}, stepJoin},
		"forming, but one is silent":                {b, []peerView{with(a, state), with(c, silent)}, stepWait},
		"the first comes late to the forming":       {a, []peerView{with(b, state), c}, stepJoin},
		"one lists other peers":                     {a, []peerView{b, with(c, others)}, stepWait},
		"one has another name":                      {a, []peerView{b, with(c, renamed)}, stepWait},
		"one was wiped":                             {a, []peerView{b, with(c, wiped)}, stepWait},
		"this one was wiped":                        {with(a, wiped), []peerView{b, c}, stepAsk},
		"this one was wiped, all others too":        {with(a, wiped), []peerView{with(b, wiped), with(c, wiped)}, stepAsk},
		"this one is not among those that form":     {with(a, alone), []peerView{with(b, alone), with(c, alone)}, stepAsk},
	} {
		if got, why := decide(test.self, test.others); got != test.want || why == "" {
			t.Errorf("%s: got %d (%s), want %d", name, got, why, test.want)
		}
	}
}
