package state

import "strake/internal/layout"

// Segment gives a segment's record.
func (v *View) Segment(id layout.SegmentID) (Segment, bool) {
	s := v.t.segment(id)
	if s == nil {
		return Segment{}, false
	}
	return *s, true
}

// The listings below give segments in id order, those above after, at most
// `most` of them (default and cap MaxPage); more tells that others follow.

// SegmentsOfVolume lists a volume's segments, in every state.
func (v *View) SegmentsOfVolume(id layout.VolumeID, after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.byVolume, uint64(id), after, most)
}

// SegmentsOnDevice lists the segments with a shard on the device.
func (v *View) SegmentsOnDevice(id layout.DeviceID, after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.byDevice, uint64(id), after, most)
}

// Unsealed lists a volume's allocated and open segments.
func (v *View) Unsealed(id layout.VolumeID, after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.unsealed, uint64(id), after, most)
}

// Allocated lists all segments whose shards are being created.
func (v *View) Allocated(after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.allocated, all, after, most)
}

// Unfinalized lists all segments that are sealed, needed and not finalized.
// Those of purged volumes are among them.
func (v *View) Unfinalized(after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.unfinalized, all, after, most)
}

// Deletable lists segments that are dropped or no longer needed. Segments of
// purged volumes are listed by volume.
func (v *View) Deletable(after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.deletable, all, after, most)
}

// Damaged lists finalized segments that are needed and have shards marked lost.
func (v *View) Damaged(after layout.SegmentID, most int) (page []Segment, more bool) {
	return v.page(v.t.lost, all, after, most)
}

func (v *View) page(x index, owner uint64, after layout.SegmentID, most int) (page []Segment, more bool) {
	most = clampPage(most)
	x.ascend(owner, uint64(after), func(id uint64) bool {
		if len(page) == most {
			more = true
			return false
		}
		page = append(page, *v.t.segment(layout.SegmentID(id)))
		return true
	})
	return page, more
}

// Purged lists volumes that are being deleted for ever.
func (v *View) Purged(after layout.VolumeID, most int) (page []Volume, more bool) {
	return v.volumesIn(v.t.purged, after, most)
}

// Unrecovered lists volumes, removed ones too, that have unsealed segments and
// no holder.
func (v *View) Unrecovered(after layout.VolumeID, most int) (page []Volume, more bool) {
	return v.volumesIn(v.t.orphaned, after, most)
}

func (v *View) volumesIn(x index, after layout.VolumeID, most int) (page []Volume, more bool) {
	most = clampPage(most)
	x.ascend(all, uint64(after), func(id uint64) bool {
		if len(page) == most {
			more = true
			return false
		}
		vol, _ := v.Volume(layout.VolumeID(id))
		page = append(page, vol)
		return true
	})
	return page, more
}
