package discovery

import (
	"context"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"strake/internal/errs"
)

// maxKeys bounds what one look at the directory reads.
const maxKeys = 16384

// Cell is an entry of the fleet's directory.
type Cell struct {
	Name      string
	ID        uint64   // 0: it has not formed yet
	Addresses []string // of the metadata servers that run, sorted
}

// Cells lists the fleet's cells by name. Errors: Unavailable, PermissionDenied,
// InvalidArgument.
func Cells(ctx context.Context, a Address) ([]Cell, error) {
	cfg, err := config(a)
	if err != nil {
		return nil, err
	}
	client, err := open(cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(maxKeys))
	if err != nil {
		return nil, failed(err, "list the cells in etcd")
	}
	if reply.More {
		return nil, errs.New(errs.Overloaded, "list the cells in etcd", "more than %d keys", maxKeys)
	}
	byName := map[string]*Cell{}
	for _, kv := range reply.Kvs {
		note(byName, strings.TrimPrefix(string(kv.Key), prefix), string(kv.Value))
	}
	list := make([]Cell, 0, len(byName))
	for _, c := range byName {
		slices.Sort(c.Addresses)
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Cell) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// note adds one key to the directory; keys that mean nothing are left out.
func note(byName map[string]*Cell, key, value string) {
	name, field, _ := strings.Cut(key, "/")
	c := byName[name]
	if c == nil {
		c = &Cell{Name: name}
		byName[name] = c
	}
	if addr, ok := strings.CutPrefix(field, "meta/"); ok {
		c.Addresses = append(c.Addresses, addr)
	}
	if field == "id" {
		c.ID, _ = strconv.ParseUint(value, 16, 64)
	}
}
