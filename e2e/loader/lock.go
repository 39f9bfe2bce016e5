package main

import (
	"context"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"strake/internal/discovery"
	"strake/internal/discovery/etcdtest"
)

// lockWithin bounds how long etcd may take to start and to be locked.
const lockWithin = time.Minute

// lock locks the etcd of the cell for the user of its URL, by the certificate there.
func lock(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	a, err := discovery.Parse(o.cell)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return err
	}
	info := transport.TLSInfo{TrustedCAFile: a.CA, CertFile: a.Cert, KeyFile: a.Key}
	secured, err := info.ClientConfig()
	if err != nil {
		return err
	}
	cfg := clientv3.Config{Endpoints: []string{"https://" + a.Hosts[0]}, TLS: secured, Context: ctx}
	return etcdtest.Lock(ctx, cfg, "/strake/", a.User, strings.TrimSpace(string(password)))
}
