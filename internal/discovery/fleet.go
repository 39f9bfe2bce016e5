package discovery

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"strake/internal/errs"
	"strake/internal/layout"
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
	address, isServer := strings.CutPrefix(field, "meta/")
	if at, ok := hostPort(address); isServer && (!ok || at != address) {
		return
	}
	if layout.CheckName("cell", name) != nil || !isServer && field != "id" && field != "founders" {
		return
	}
	c := byName[name]
	if c == nil {
		c = &Cell{Name: name}
		byName[name] = c
	}
	if isServer {
		c.Addresses = append(c.Addresses, address)
	}
	if id, ok := parseID(value); ok && field == "id" {
		c.ID = id
	}
}

// formatID writes a cell's id as etcd keeps it: 16 hexadecimal digits.
func formatID(id uint64) string { return fmt.Sprintf("%016x", id) }

// parseID reads what formatID wrote, and nothing else.
func parseID(s string) (id uint64, ok bool) {
	id, err := strconv.ParseUint(s, 16, 64)
	return id, err == nil && formatID(id) == s
}
