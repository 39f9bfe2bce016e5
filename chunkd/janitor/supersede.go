package janitor

import (
	"context"

	"strake/chunkd/store"
	"strake/proto/frame"
)

// A device holds one generation of a shard. One that was given up and came back
// holds an older one than the placement's, and keeps it until the segment is whole
// without it. When it is the only device left for a shard that was lost meanwhile,
// the older generation has to make way first. So has a damaged shard that can't be
// repaired in its place, when no other device is left for it.

// supersede deletes an older generation of the shard and creates the new one in its
// place. It is deleted only after the whole new shard was made from the sources once,
// and held against its checksums: what is deleted is needed no more. No placement
// names it, now or later, but one that counts it as lost: generations only rise. refused is why the new shard could
// not be created, and the answer when there is no older generation.
func (t *task) supersede(ctx context.Context, refused error) error {
	old, ok := t.older()
	if !ok {
		return refused
	}
	list, err := t.list(ctx)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		batch := cutBatch(list)
		if _, err := t.make(ctx, batch); err != nil {
			return err
		}
		list = list[len(batch):]
		t.turn++
	}
	if err := t.Device.turn(ctx, true, 1, func() error { return t.Device.Store.Delete(old) }); err != nil {
		return err
	}
	return t.create(ctx)
}

// older finds an older generation of the shard on the target's device.
func (t *task) older() (ref frame.ShardRef, ok bool) {
	t.Device.Store.Each(func(st store.Stat) bool {
		ok = st.Ref.ShardKey == t.spec.Key && st.Ref.Generation < t.spec.Generation
		ref = st.Ref
		return !ok
	})
	return ref, ok && !t.inPlace
}
