package etcdtest

import (
	"context"
	"crypto/rand"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lock makes an etcd that nobody has locked yet ask for passwords from now on, and
// adds a user who may read and write what is below a prefix and nothing else. The
// password of etcd's own root is drawn and forgotten.
func Lock(ctx context.Context, cfg clientv3.Config, prefix, user, password string) error {
	c, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, step := range []func() error{
		func() error { return second(c.UserAdd(ctx, "root", rand.Text())) },
		func() error { return second(c.UserGrantRole(ctx, "root", "root")) },
		func() error { return second(c.RoleAdd(ctx, user)) },
		func() error {
			return second(c.RoleGrantPermission(ctx, user, prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
		},
		func() error { return second(c.UserAdd(ctx, user, password)) },
		func() error { return second(c.UserGrantRole(ctx, user, user)) },
		func() error { return second(c.AuthEnable(ctx)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func second[T any](_ T, err error) error { return err }
