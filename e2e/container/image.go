package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strake/internal/discovery/etcdtest"
)

// Images are what a cell is made of.
type Images struct {
	Strake string // the command, as /strake
	Etcd   string // as /etcd
	Loader string // the workload, as /loader
}

// Build builds the images from the working tree. dir is a folder to work in.
func (e *Engine) Build(ctx context.Context, dir string) (Images, error) {
	root, err := moduleRoot()
	if err != nil {
		return Images{}, err
	}
	images := Images{Strake: e.prefix + "-strake:now", Etcd: e.prefix + "-etcd:now", Loader: e.prefix + "-loader:now"}
	recipe := filepath.Join(root, "deploy", "image", "Dockerfile")
	if err := e.buildTree(ctx, root, recipe, filepath.Join(dir, "now"), images); err != nil {
		return images, err
	}
	etcd := filepath.Join(dir, "etcd")
	for name, build := range map[string]func(context.Context) (string, error){"etcd": etcdtest.Binary, "etcdctl": etcdtest.Etcdctl} {
		binary, err := build(ctx)
		if err == nil {
			err = copyFile(binary, filepath.Join(etcd, name))
		}
		if err != nil {
			return images, err
		}
	}
	return images, e.imageFrom(ctx, etcd, images.Etcd, filepath.Join(root, "deploy", "etcd", "Dockerfile"))
}

// ErrNoPrevious says that the repository here has no commit to build from.
var ErrNoPrevious = errors.New("there is no such commit here")

// BuildPrevious builds strake's image and the workload's from the commit before the
// newest one, or from STRAKE_E2E_PREVIOUS, and gives the commit. Error: ErrNoPrevious, and
// those of a build.
func (e *Engine) BuildPrevious(ctx context.Context, dir string) (images Images, commit string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return images, "", err
	}
	revision := os.Getenv("STRAKE_E2E_PREVIOUS")
	if revision == "" {
		revision = "HEAD~1"
	}
	out, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--verify", revision+"^{commit}").Output()
	if err != nil {
		return images, "", fmt.Errorf("find commit %s: %w: %v", revision, ErrNoPrevious, err)
	}
	commit = strings.TrimSpace(string(out))
	tree := filepath.Join(dir, "previous-tree")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return images, "", err
	}
	unpack := exec.CommandContext(ctx, "sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, tree)
	if out, err := unpack.CombinedOutput(); err != nil {
		return images, "", fmt.Errorf("unpack commit %s: %w: %s", commit, err, out)
	}
	images = Images{Strake: e.prefix + "-strake:previous", Loader: e.prefix + "-loader:previous"}
	recipe := filepath.Join(root, "deploy", "image", "Dockerfile")
	return images, commit, e.buildTree(ctx, tree, recipe, filepath.Join(dir, "previous"), images)
}

// buildTree builds strake and the workload from a tree of their source into images.
func (e *Engine) buildTree(ctx context.Context, tree, recipe, dir string, images Images) error {
	strake, loader := filepath.Join(dir, "strake"), filepath.Join(dir, "loader")
	if err := goBuild(ctx, tree, filepath.Join(strake, "strake"), "./cmd/strake"); err != nil {
		return err
	}
	if err := e.imageFrom(ctx, strake, images.Strake, recipe); err != nil {
		return err
	}
	if err := goBuild(ctx, tree, filepath.Join(loader, "loader"), "./e2e/loader"); err != nil {
		return err
	}
	return e.image(ctx, loader, images.Loader, "FROM scratch\nCOPY loader /loader\nUSER 65532:65532\nENTRYPOINT [\"/loader\"]\n")
}

func goBuild(ctx context.Context, tree, binary, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, pkg)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// imageFrom makes an image by a recipe that lies elsewhere.
func (e *Engine) imageFrom(ctx context.Context, dir, image, recipe string) error {
	b, err := os.ReadFile(recipe)
	if err != nil {
		return err
	}
	return e.image(ctx, dir, image, string(b))
}

// image makes an image from what lies in dir, and an empty folder.
func (e *Engine) image(ctx context.Context, dir, image, recipe string) error {
	if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, "Dockerfile")
	if err := os.WriteFile(path, []byte(recipe), 0o644); err != nil {
		return err
	}
	args := append([]string{"build", "-q", "-t", image, "-f", path}, e.label()...)
	_, err := e.docker(ctx, append(args, dir)...)
	return err
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// moduleRoot is the folder of strake's go.mod, from here upwards.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}
