package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command runs a program to its end. A non-zero exit is no error; it stands in
// the result.
func Command(ctx context.Context, binary string, args ...string) (Result, error) {
	var out, bad strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return Result{out.String(), bad.String(), cmd.ProcessState.ExitCode()}, err
}

// Build builds the strake command into a directory: static, or with the race
// detector when this program has it.
func Build(ctx context.Context, dir string) (binary string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "strake")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/strake")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if raceEnabled {
		cmd.Args = []string{"go", "build", "-race", "-o", binary, "./cmd/strake"}
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build strake: %w\n%s", err, out)
	}
	return binary, nil
}

// moduleRoot is the folder of go.mod, from here upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}
