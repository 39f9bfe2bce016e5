package state

import (
	"bytes"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"strake/internal/errs"
)

// commandVersion is the version of every encoded command.
const commandVersion = 1

// Encode gives a command's bytes: version (1 byte), type (1 byte), and the
// command's fields as deterministic CBOR with the numbers of their tags for
// keys (a geometry's keys are "K" and "M"). The same command gives the same bytes.
func Encode(cmd Command) []byte {
	body, err := encoding().Marshal(cmd)
	if err != nil {
		panic(fmt.Sprintf("encode command %T: %v", cmd, err)) // only a type that CBOR can't carry: a bug
	}
	return append([]byte{commandVersion, byte(cmd.Type())}, body...)
}

// Decode reads a command. Unknown types, versions and fields are refused, never
// skipped: a server that does not know a command must not apply the log past
// it. So is every form that Encode would not have chosen.
func Decode(b []byte) (Command, error) {
	const op = "decode command"
	if len(b) > MaxCommandBytes {
		return nil, errs.New(errs.TooLarge, op, "%d bytes, at most %d", len(b), MaxCommandBytes)
	}
	if len(b) < 2 {
		return nil, errs.New(errs.Corrupt, op, "%d bytes", len(b))
	}
	if b[0] != commandVersion {
		return nil, errs.New(errs.Version, op, "version %d, this program reads %d", b[0], commandVersion).
			WithHint("start a newer program on this server")
	}
	cmd, err := decodeBody(Type(b[1]), b[2:])
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(Encode(cmd), b) {
		return nil, errs.New(errs.Corrupt, op, "type %d: the bytes are not in the form that is written", b[1])
	}
	return cmd, nil
}

func decodeBody(typ Type, b []byte) (Command, error) {
	switch typ {
	case TypeFormCell:
		return decodeAs[FormCell](b)
	case TypeRegisterServer:
		return decodeAs[RegisterServer](b)
	case TypeUpdateDevices:
		return decodeAs[UpdateDevices](b)
	case TypeSetServerState:
		return decodeAs[SetServerState](b)
	case TypeOpenSession:
		return decodeAs[OpenSession](b)
	case TypeCloseSession:
		return decodeAs[CloseSession](b)
	case TypeExpireSession:
		return decodeAs[ExpireSession](b)
	case TypeCreateVolume:
		return decodeAs[CreateVolume](b)
	case TypeResizeVolume:
		return decodeAs[ResizeVolume](b)
	case TypeRemoveVolume:
		return decodeAs[RemoveVolume](b)
	case TypeUndeleteVolume:
		return decodeAs[UndeleteVolume](b)
	case TypePurgeVolume:
		return decodeAs[PurgeVolume](b)
	case TypeAcquireLease:
		return decodeAs[AcquireLease](b)
	case TypeReleaseLease:
		return decodeAs[ReleaseLease](b)
	case TypeAllocateSegments:
		return decodeAs[AllocateSegments](b)
	case TypeOpenSegments:
		return decodeAs[OpenSegments](b)
	case TypeDropSegments:
		return decodeAs[DropSegments](b)
	case TypeSealSegments:
		return decodeAs[SealSegments](b)
	case TypeCloseEpoch:
		return decodeAs[CloseEpoch](b)
	case TypeRecordRoot:
		return decodeAs[RecordRoot](b)
	case TypeMarkFinalized:
		return decodeAs[MarkFinalized](b)
	case TypeReplaceShard:
		return decodeAs[ReplaceShard](b)
	case TypeMarkDeleted:
		return decodeAs[MarkDeleted](b)
	case TypeMarkLost:
		return decodeAs[MarkLost](b)
	case TypeMarkSound:
		return decodeAs[MarkSound](b)
	case TypeChangeDevices:
		return decodeAs[ChangeDevices](b)
	case TypeRemoveServer:
		return decodeAs[RemoveServer](b)
	case TypeSetClass, TypeRemoveClass, TypeReserve, TypeRenewReservation, TypeEndReservation:
		return decodeQoS(typ, b)
	case TypeRestoreCell:
		return decodeAs[RestoreCell](b)
	case TypeRecordMember:
		return decodeAs[RecordMember](b)
	}
	return decodeFrozen(typ, b)
}

// decodeFrozen is decodeBody for commands about snapshots and branches.
func decodeFrozen(typ Type, b []byte) (Command, error) {
	switch typ {
	case TypeCreateSnapshots:
		return decodeAs[CreateSnapshots](b)
	case TypeRemoveSnapshot:
		return decodeAs[RemoveSnapshot](b)
	case TypeCloneVolume:
		return decodeAs[CloneVolume](b)
	case TypeRollbackVolume:
		return decodeAs[RollbackVolume](b)
	case TypePinSnapshot:
		return decodeAs[PinSnapshot](b)
	case TypeUnpinSnapshot:
		return decodeAs[UnpinSnapshot](b)
	case TypeHoldTag:
		return decodeAs[HoldTag](b)
	case TypeMarkTagReady:
		return decodeAs[MarkTagReady](b)
	case TypeFreeSegments:
		return decodeAs[FreeSegments](b)
	case TypeRebalance:
		return decodeAs[Rebalance](b)
	case TypeFlattenVolume:
		return decodeAs[FlattenVolume](b)
	}
	return nil, errs.New(errs.Version, "decode command", "unknown command type %d", typ).
		WithHint("start a newer program on this server")
}

func decodeQoS(typ Type, b []byte) (Command, error) {
	switch typ {
	case TypeSetClass:
		return decodeAs[SetClass](b)
	case TypeRemoveClass:
		return decodeAs[RemoveClass](b)
	case TypeReserve:
		return decodeAs[Reserve](b)
	case TypeRenewReservation:
		return decodeAs[RenewReservation](b)
	}
	return decodeAs[EndReservation](b)
}

func decodeAs[T Command](b []byte) (Command, error) {
	var c T
	if err := decodeStrict(b, &c); err != nil {
		return nil, errs.As(err, errs.Corrupt, "decode command type %d", c.Type())
	}
	return c, nil
}

func decodeStrict(b []byte, to any) error { return decoding().Unmarshal(b, to) }

// The CBOR modes are immutable.
var (
	encMode, errEnc = cbor.CoreDetEncOptions().EncMode()
	decMode, errDec = cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  1 << 16,
		MaxMapPairs:       64,
		MaxNestedLevels:   8,
	}.DecMode()
)

func encoding() cbor.EncMode {
	if errEnc != nil {
		panic(errEnc)
	}
	return encMode
}

func decoding() cbor.DecMode {
	if errDec != nil {
		panic(errDec)
	}
	return decMode
}
