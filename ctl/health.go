package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strake/internal/errs"
	"strake/internal/health"
	"strake/internal/tls"
)

// healthTimeout bounds one question.
const healthTimeout = 3 * time.Second

// defaultDaemons is where a host's daemons answer unless told otherwise: a
// metadata server, and the control plane of a chunk server.
var defaultDaemons = []string{defaultCell, "127.0.0.1:8410"}

func (a *app) healthCommand() *cobra.Command {
	var ready bool
	c := &cobra.Command{
		Use: "health [ADDRESS]", Short: "ask one daemon whether it is well; exit 0 yes, 1 no", Args: cobra.MaximumNArgs(1),
		Long: `Ask one daemon whether it is well: for the health checks of containers and the like, which
have no shell to do it with. ADDRESS is a metadata server's, or the control plane's of a
chunk server; without one, the default ports of this host are asked, and one must answer.
The health of the whole cell: strake status.`,
		Example: "  strake health\n  strake health --ready 127.0.0.1:7400",
		RunE: func(cmd *cobra.Command, args []string) error {
			question := health.Alive
			if ready {
				question = health.Ready
			}
			if len(args) == 0 {
				args = defaultDaemons
			}
			addr, err := askAny(cmd.Context(), args, question)
			if err != nil {
				return err
			}
			return a.print(map[string]any{"address": addr, "ok": true}, func(w io.Writer) { fmt.Fprintf(w, "%s is well\n", addr) })
		},
	}
	c.Flags().BoolVar(&ready, "ready", false, "ask whether it is a member of its cell and serves, not only whether it is alive")
	return c
}

// askAny asks each daemon; the first that says yes is enough. The error is the
// last one's.
func askAny(ctx context.Context, addresses []string, question string) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for _, addr := range addresses {
		if err = health.Ask(ctx, tls.Policy{}, addr, question); err == nil {
			return addr, nil
		}
	}
	return "", errs.As(err, errs.Unavailable, "health")
}
