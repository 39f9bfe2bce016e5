package fault

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"strake/e2e/container"
)

// Network tells whether this host lets rules be set in a container's network
// namespace; the error says what is missing.
func Network() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root may enter a container's network namespace")
	}
	for _, tool := range []string{"nsenter", "iptables"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	return nil
}

// Deafen makes node hear nothing of the others, which still hear it.
func Deafen(ctx context.Context, node *container.Node, others ...*container.Node) error {
	for _, o := range others {
		ip, err := o.IP(ctx)
		if err != nil {
			return err
		}
		if err := rule(ctx, node, "-A", "INPUT", "-s", ip, "-j", "DROP"); err != nil {
			return err
		}
	}
	return nil
}

// Cut parts two nodes from each other; both still reach everybody else.
func Cut(ctx context.Context, a, b *container.Node) error {
	if err := Deafen(ctx, a, b); err != nil {
		return err
	}
	return Deafen(ctx, b, a)
}

// Lossy makes a node lose packets that come in, a fraction of 0 to 1.
func Lossy(ctx context.Context, node *container.Node, fraction float64) error {
	return rule(ctx, node, "-A", "INPUT", "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(fraction, 'f', 3, 64), "-j", "DROP")
}

// Slow lets so many packets a second into a node, and drops the others.
func Slow(ctx context.Context, node *container.Node, packets int) error {
	err := rule(ctx, node, "-A", "INPUT", "-m", "limit", "--limit", fmt.Sprintf("%d/second", packets), "--limit-burst", "20", "-j", "ACCEPT")
	if err != nil {
		return err
	}
	return rule(ctx, node, "-A", "INPUT", "-j", "DROP")
}

// Heal takes all rules out of a node.
func Heal(ctx context.Context, node *container.Node) error {
	return rule(ctx, node, "-F", "INPUT")
}

// rule changes the filter rules in a node's network namespace.
func rule(ctx context.Context, node *container.Node, args ...string) error {
	pid, err := node.Pid(ctx)
	if err != nil {
		return err
	}
	enter := append([]string{"-t", strconv.Itoa(pid), "-n", "iptables", "-w", "5"}, args...)
	if out, err := exec.CommandContext(ctx, "nsenter", enter...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables %v in %s: %w: %s", args, node.Name, err, out)
	}
	return nil
}
