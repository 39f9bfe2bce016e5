package state

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"strake/internal/errs"
)

// newerProgram is what to do about bytes of a later version.
const newerProgram = "a newer program wrote this: start that one, or a later one, on this server"

// Encode gives a command's bytes: version (1 byte, see Since), type (1 byte), and the
// command's fields as deterministic CBOR with the numbers of their tags for
// keys (a geometry's keys are "K" and "M"). The same command gives the same bytes.
func Encode(cmd Command) []byte {
	body, err := encoding().Marshal(cmd)
	if err != nil {
		panic(fmt.Sprintf("encode command %T: %v", cmd, err)) // only a type that CBOR can't carry: a bug
	}
	return append([]byte{byte(Since(cmd)), byte(cmd.Type())}, body...)
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
	if b[0] < firstVersion || b[0] > Version {
		return nil, errs.New(errs.Version, op, "version %d, this program reads %d to %d", b[0], firstVersion, Version).WithHint(newerProgram)
	}
	k := kinds[b[1]]
	if k.decode == nil {
		return nil, errs.New(errs.Version, op, "unknown command type %d", b[1]).WithHint(newerProgram)
	}
	cmd, err := k.decode(b[2:])
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(Encode(cmd)[1:], b[1:]) {
		return nil, errs.New(errs.Corrupt, op, "type %d: the bytes are not in the form that is written", b[1])
	}
	return cmd, nil
}

// kind is what the codec knows of one type of command.
type kind struct {
	decode func([]byte) (Command, error)
	zero   Command
	marked bool // fields of it came with later versions
}

func of[T Command]() kind {
	var zero T
	return kind{decode: decodeAs[T], zero: zero, marked: hasMarks(reflect.TypeFor[T]())}
}

// kinds are all commands by their type. Immutable.
var kinds = [1 << 8]kind{
	TypeFormCell:         of[FormCell](),
	TypeRegisterServer:   of[RegisterServer](),
	TypeUpdateDevices:    of[UpdateDevices](),
	TypeSetServerState:   of[SetServerState](),
	TypeOpenSession:      of[OpenSession](),
	TypeCloseSession:     of[CloseSession](),
	TypeExpireSession:    of[ExpireSession](),
	TypeCreateVolume:     of[CreateVolume](),
	TypeResizeVolume:     of[ResizeVolume](),
	TypeRemoveVolume:     of[RemoveVolume](),
	TypeUndeleteVolume:   of[UndeleteVolume](),
	TypePurgeVolume:      of[PurgeVolume](),
	TypeAcquireLease:     of[AcquireLease](),
	TypeReleaseLease:     of[ReleaseLease](),
	TypeAllocateSegments: of[AllocateSegments](),
	TypeOpenSegments:     of[OpenSegments](),
	TypeDropSegments:     of[DropSegments](),
	TypeSealSegments:     of[SealSegments](),
	TypeCloseEpoch:       of[CloseEpoch](),
	TypeRecordRoot:       of[RecordRoot](),
	TypeMarkFinalized:    of[MarkFinalized](),
	TypeReplaceShard:     of[ReplaceShard](),
	TypeMarkDeleted:      of[MarkDeleted](),
	TypeMarkLost:         of[MarkLost](),
	TypeMarkSound:        of[MarkSound](),
	TypeChangeDevices:    of[ChangeDevices](),
	TypeRemoveServer:     of[RemoveServer](),
	TypeSetClass:         of[SetClass](),
	TypeRemoveClass:      of[RemoveClass](),
	TypeReserve:          of[Reserve](),
	TypeRenewReservation: of[RenewReservation](),
	TypeEndReservation:   of[EndReservation](),
	TypeRestoreCell:      of[RestoreCell](),
	TypeRecordMember:     of[RecordMember](),
	TypeCreateSnapshots:  of[CreateSnapshots](),
	TypeRemoveSnapshot:   of[RemoveSnapshot](),
	TypeCloneVolume:      of[CloneVolume](),
	TypeRollbackVolume:   of[RollbackVolume](),
	TypePinSnapshot:      of[PinSnapshot](),
	TypeUnpinSnapshot:    of[UnpinSnapshot](),
	TypeHoldTag:          of[HoldTag](),
	TypeMarkTagReady:     of[MarkTagReady](),
	TypeFreeSegments:     of[FreeSegments](),
	TypeRebalance:        of[Rebalance](),
	TypeFlattenVolume:    of[FlattenVolume](),
}

func decodeAs[T Command](b []byte) (Command, error) {
	var c T
	if err := decodeStrict(b, &c); err != nil {
		return nil, undecoded(err, fmt.Sprintf("decode command type %d", c.Type()))
	}
	return c, nil
}

// undecoded is the refusal of bytes that are no record this program knows: Version
// for one with a field that it does not know, else Corrupt.
func undecoded(err error, op string) error {
	if _, ok := errors.AsType[*cbor.UnknownFieldError](err); ok {
		return errs.As(err, errs.Version, "%s", op).(*errs.Error).WithHint(newerProgram)
	}
	return errs.As(err, errs.Corrupt, "%s", op)
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
