package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"strake/internal/discovery/etcdtest"
)

const (
	keysAt   = "/keys" // where a Secure etcd's certificate, key and password lie in containers
	etcdData = "/var/lib/etcd"
)

// defineEtcd says what the node etcd is, and the cell's address in it.
func (c *Cell) defineEtcd() {
	scheme := "http"
	c.Address = "etcd://etcd:2379/e2e"
	args := []string{"--name", "etcd", "--data-dir", etcdData, "--log-level", "warn"}
	if c.opts.Secure {
		scheme = "https"
		dir := c.t.TempDir()
		_, _, err := etcdtest.Certificate(dir, "etcd")
		c.must(err)
		c.must(os.WriteFile(filepath.Join(dir, "password"), []byte("secret\n"), 0o644))
		c.must(os.Chmod(dir, 0o755)) // containers run as another user
		c.keys = []string{"-v", dir + ":" + keysAt + ":ro"}
		cert, key := keysAt+"/cert.pem", keysAt+"/key.pem"
		args = append(args, "--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert, "--client-cert-auth")
		c.Address += fmt.Sprintf("?ca=%s&cert=%s&key=%s&user=strake&password-file=%s/password", cert, cert, key, keysAt)
	}
	args = append(args, "--listen-client-urls", scheme+"://0.0.0.0:2379", "--advertise-client-urls", scheme+"://etcd:2379")
	c.Etcd = &Node{Name: "etcd", cell: c, image: c.opts.Images.Etcd, mounts: append(c.volume("etcd", etcdData), c.keys...), args: args}
}

// lockEtcd starts etcd and makes it ask for certificate and password.
func (c *Cell) lockEtcd(ctx context.Context) {
	c.t.Helper()
	c.must(c.Etcd.run(ctx))
	locker := c.Load(ctx, "locker", "lock")
	code, err := locker.Wait(ctx)
	c.must(err)
	if code != 0 {
		c.t.Fatalf("etcd could not be locked: %s", locker.Log(ctx, 20))
	}
	c.Note("etcd wants certificate and password")
}
