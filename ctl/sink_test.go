package ctl

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// TestOutputThatCannotBeWrittenIsNoSuccess prints into a full disk.
func TestOutputThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	t.Setenv("STRAKE_CONFIG", "")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{"version", "version -o json", "config show", "config show -o json", "--help", "volume --help", "completion bash"} {
		args := strings.Fields(line)
		var bad bytes.Buffer
		if code := Main(args, full, &bad); code != exitFailed || !strings.Contains(bad.String(), "no space left") {
			t.Errorf("%s: exit code %d, %q", line, code, bad.String())
		}
		if code := Main(args, io.Discard, &bad); code != 0 {
			t.Errorf("%s: exit code %d where there is room", line, code)
		}
	}
}
