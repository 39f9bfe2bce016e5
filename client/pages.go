package client

import (
	"context"

	"golang.org/x/sync/errgroup"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
)

// pageParallel bounds the map pages that one call loads at once.
const pageParallel = 16

// loadPages reads pages of the extent map and installs them. Each page is
// checked by the checksum in the reference that names it.
func (v *Volume) loadPages(ctx context.Context, refs []extent.PageRef) error {
	if len(refs) == 0 {
		return nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(pageParallel)
	for _, ref := range refs {
		group.Go(func() error { return errs.Wrap(v.loadPage(groupCtx, ref), "load a page of the extent map") })
	}
	return group.Wait()
}

func (v *Volume) loadPage(ctx context.Context, ref extent.PageRef) error {
	page := make([]byte, ref.Bytes())
	where := extent.Extent{
		Range: layout.Range{Count: layout.BlockCount(ref.Blocks)},
		Place: extent.Place{Segment: ref.Segment, Offset: ref.Offset, Shape: ref.Shape, Index: ref.Index},
	}
	if err := v.fetch(ctx, vec{page}, []readPiece{{where, 0}}); err != nil {
		return err
	}
	v.stats.pages.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tree.Install(ref, page)
}
