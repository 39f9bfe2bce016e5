package layout

import "testing"

func TestPurposesGoIntoTheReserveInTheirOrder(t *testing.T) {
	for _, total := range []uint64{0, 1, 128 << 20, 1 << 40, 1<<64 - 1} {
		data, upkeep, need := ForData.Kept(total), ForUpkeep.Kept(total), ForNeed.Kept(total)
		if data < upkeep || upkeep < need || total >= 128<<20 && (data == upkeep || upkeep == need || need == 0) {
			t.Errorf("of %d bytes %d, %d and %d are kept", total, data, upkeep, need)
		}
	}
	if Purpose(9).Kept(1000) != ForData.Kept(1000) {
		t.Error("an unknown purpose goes further than data does")
	}
	if Warn(100, 85) || !Warn(100, 86) || Warn(0, 0) {
		t.Error("the first mark is not at 85 of 100")
	}
}
