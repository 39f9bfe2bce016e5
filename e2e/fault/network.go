package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"strake/e2e/container"
)

// Network tells whether this host lets rules be set in a container's network
// namespace; the error says what is missing.
func Network() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root may enter a container's network namespace")
	}
	for _, tool := range []string{"nsenter", "iptables", "ip", "tc"} {
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

// Narrow gives what a node sends so many kbit/s of its link, behind a queue as a slow
// link has, of at most 200 ms; Widen ends that. Error: errors.ErrUnsupported where the
// kernel has no such queue.
func Narrow(ctx context.Context, node *container.Node, kbits int) error {
	return shape(ctx, node, "add", "root", "tbf", "rate", fmt.Sprintf("%dkbit", kbits), "burst", "32kb", "latency", "200ms")
}

// Widen undoes Narrow.
func Widen(ctx context.Context, node *container.Node) error { return shape(ctx, node, "del", "root") }

// shape changes the queue before a node's network device.
func shape(ctx context.Context, node *container.Node, verb string, args ...string) error {
	out, err := enter(ctx, node, "ip", "-o", "-4", "addr", "show", "scope", "global")
	if err != nil {
		return err
	}
	fields := strings.Fields(out) // N: DEVICE inet ...
	if len(fields) < 2 {
		return fmt.Errorf("%s has no network device: %q", node.Name, out)
	}
	out, err = enter(ctx, node, append([]string{"tc", "qdisc", verb, "dev", fields[1]}, args...)...)
	if strings.Contains(out, "qdisc kind is unknown") {
		return errors.ErrUnsupported
	}
	return err
}

// Heal takes all rules out of a node.
func Heal(ctx context.Context, node *container.Node) error {
	return rule(ctx, node, "-F", "INPUT")
}

// rule changes the filter rules in a node's network namespace.
func rule(ctx context.Context, node *container.Node, args ...string) error {
	_, err := enter(ctx, node, append([]string{"iptables", "-w", "5"}, args...)...)
	return err
}

// enter runs a program of the host in a node's network namespace and gives all that
// it wrote.
func enter(ctx context.Context, node *container.Node, command ...string) (string, error) {
	pid, err := node.Pid(ctx)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(pid), "-n"}, command...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v in %s: %w: %s", command, node.Name, err, out)
	}
	return string(out), err
}
