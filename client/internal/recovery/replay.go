package recovery

import (
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Cut says: of epochs older than Before, replay takes stripes up to Seq only.
type Cut struct {
	Before layout.Epoch
	Seq    layout.Seq
}

// Replay gives the stripes to map, ascending by seq: those within the cuts,
// and of several copies of a seq the latest epoch's, then the latest segment's.
// It sorts headers in place and returns a prefix of it.
func Replay(headers []*stripe.Header, cuts []Cut) []*stripe.Header { return headers }
