package state

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strake/internal/errs"
)

// rewriting tells whether the goldens are to follow the code.
func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// TestEveryCommandEverWrittenIsReadUnchanged reads frozen bytes: of each type as it is
// now, and as it was before fields were added. A line that stands is never changed or
// taken out: logs hold such commands.
func TestEveryCommandEverWrittenIsReadUnchanged(t *testing.T) {
	const path = "testdata/commands"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, line := range known {
		name, digits, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		cmd, err := Decode(b)
		if err != nil || fmt.Sprintf("%T", cmd) != name {
			t.Errorf("%s: got %T, %v", line, cmd, err)
		}
	}
	for _, c := range samples() {
		line := fmt.Sprintf("%T %s", c, hex.EncodeToString(Encode(c)))
		if slices.Contains(known, line) {
			continue
		}
		if !rewriting() {
			t.Errorf("this form of a command has no frozen bytes (add them with -rewrite): %s", line)
		}
		known = append(known, line)
	}
	if rewriting() {
		if err := os.WriteFile(path, []byte(strings.Join(known, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shape is a line for one thing that commands and state are made of, and the version
// that brought it; 0 where the code does not say.
type shape struct {
	line  string
	since uint32
}

// shapes lists them.
func shapes(t *testing.T) (list []shape) {
	w := &walker{t: t, seen: map[reflect.Type]bool{}}
	for typ, k := range kinds {
		if k.zero == nil {
			continue
		}
		since := uint32(firstVersion)
		if n, ok := k.zero.(newer); ok {
			since = n.since()
		}
		w.add(since, "command %d %s", typ, reflect.TypeOf(k.zero).Name())
		w.walk(reflect.TypeOf(k.zero))
	}
	for _, r := range []any{cellRecord{}, Server{}, Device{}, Session{}, Volume{}, Frozen{}, remembered{}} {
		w.add(0, "record %T", r)
		w.walk(reflect.TypeOf(r))
	}
	w.values(".")
	w.values("../../internal/layout")
	return w.list
}

type walker struct {
	t    *testing.T
	seen map[reflect.Type]bool
	list []shape
}

func (w *walker) add(since uint32, format string, args ...any) {
	w.list = append(w.list, shape{fmt.Sprintf(format, args...), since})
}

// walk lists the fields of a type, and of those that it is made of.
func (w *walker) walk(typ reflect.Type) {
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array || typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if w.seen[typ] {
		return
	}
	w.seen[typ] = true
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := f.Tag.Get("cbor")
		if tag == "-" || !f.IsExported() && tag == "" {
			continue
		}
		w.add(sinceField(f), "field %s %s %s", typ.Name(), cmpOr(tag, f.Name), f.Type)
		w.walk(f.Type)
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// values lists the named values of the types that were met.
func (w *walker) values(dir string) {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		w.t.Fatal(err)
	}
	types := map[string]bool{}
	for typ := range w.seen {
		types[typ.Name()] = typ.Kind() == reflect.Uint8
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			typ, named := spec.Type.(*ast.Ident)
			value, plain := spec.Values[0].(*ast.BasicLit)
			if named && plain && types[typ.Name] {
				w.add(0, "value %s %s", typ.Name, value.Value)
			}
			return true
		})
	}
}

// TestWhatIsAddedRaisesTheVersion compares what commands and state are made of with
// what is on record for each version. Two programs that tell the same version read
// each other's log and snapshots, and only then.
func TestWhatIsAddedRaisesTheVersion(t *testing.T) {
	const path = "testdata/shapes"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known, newest := map[string]uint32{}, uint32(0)
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if n, ok := strings.CutPrefix(line, "version "); ok {
			v, err := strconv.ParseUint(n, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			newest = uint32(v)
			continue
		}
		known[line] = newest
	}
	var added []string
	for _, s := range shapes(t) {
		version, ok := known[s.line]
		delete(known, s.line)
		switch {
		case !ok && s.since != 0 && max(s.since, FirstCounted) != newest+1:
			t.Errorf("new, and must be marked as of version %d: %s", newest+1, s.line)
		case !ok && s.since > firstVersion && strings.HasPrefix(s.line, "field") && !strings.Contains(s.line, "omitempty"):
			t.Errorf("new, and must be left out while it is zero: %s", s.line)
		case !ok:
			added = append(added, s.line)
		case s.since != 0 && max(s.since, FirstCounted) != version:
			t.Errorf("marked as of version %d, on record for %d: %s", s.since, version, s.line)
		}
	}
	for line := range known {
		t.Errorf("gone or changed, which no version may do: %s", line)
	}
	switch {
	case len(added) == 0 && Version != newest:
		t.Errorf("nothing is new, so the version is %d and not %d", newest, Version)
	case len(added) > 0 && Version != newest+1:
		t.Errorf("the version must be %d, for this is new:\n%s", newest+1, strings.Join(added, "\n"))
	case len(added) > 0 && !rewriting():
		t.Errorf("put on record with -rewrite:\n%s", strings.Join(added, "\n"))
	case len(added) > 0 && !t.Failed():
		b = fmt.Appendf(b, "version %d\n%s\n", Version, strings.Join(added, "\n"))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestASnapshotOfEachVersionIsRead reads frozen ones: one of version 1, which a program
// of that time made of 400 random commands, and one of version 2 by this one.
func TestASnapshotOfEachVersionIsRead(t *testing.T) {
	for _, c := range []struct {
		path              string
		servers, sessions int
		volumes           int
	}{
		{"testdata/snapshot.v1", 4, 10, 5},
		{"testdata/snapshot.v2", 5, 10, 5},
	} {
		b, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Restore(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		v := s.View()
		if err := v.Check(); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if v.Version() != 2 {
			t.Errorf("%s: the state is of version %d", c.path, v.Version())
		}
		page, _ := v.Volumes("", "", 0)
		if len(v.Servers()) != c.servers || len(v.Sessions()) != c.sessions || len(page) != c.volumes {
			t.Errorf("%s: %d servers, %d sessions, %d volumes; want %+v", c.path, len(v.Servers()), len(v.Sessions()), len(page), c)
		}
		again := snapshotBytes(t, s)
		if b[8] == 2 && !bytes.Equal(again, b) {
			t.Errorf("%s: it is written differently now", c.path)
		}
		if s, err = Restore(bytes.NewReader(again)); err != nil || !bytes.Equal(snapshotBytes(t, s), again) {
			t.Errorf("%s: written again it is not the same: %v", c.path, err)
		}
	}
}

// later is a command of a version after this one's.
type later struct{ OpenSession }

func (later) since() uint32 { return Version + 1 }

func TestACommandThatIsCarriedOutRaisesTheStatesVersion(t *testing.T) {
	s := New()
	s.Apply(1, FormCell{ID: 1, Cell: 7})
	if got := s.View().Version(); got != FirstCounted {
		t.Errorf("the state began with version %d", got)
	}
	if r := s.Apply(2, later{OpenSession{ID: 0, Owner: "a"}}); r.Err == nil || s.View().Version() != FirstCounted {
		t.Errorf("refused (%v), it made version %d", r.Err, s.View().Version())
	}
	if r := s.Apply(3, later{OpenSession{ID: 2, Owner: "a"}}); r.Err != nil || s.View().Version() != Version+1 {
		t.Errorf("carried out (%v), it made version %d", r.Err, s.View().Version())
	}
	b := snapshotBytes(t, s)
	if _, err := Restore(bytes.NewReader(b)); errs.KindOf(err) != errs.Version || errs.HintOf(err) == "" {
		t.Errorf("a snapshot of a later version: %v", err)
	}
	if b := Encode(later{}); b[0] != Version+1 {
		t.Errorf("it is written under version %d", b[0])
	}
}

// TestAFieldHasTheVersionThatBroughtIt looks at a type with fields of three versions.
func TestAFieldHasTheVersionThatBroughtIt(t *testing.T) {
	type inner struct {
		Old uint8
		New uint8 `since:"7"`
	}
	type outer struct {
		Old   uint8
		New   uint8 `since:"5"`
		Inner []inner
	}
	for _, c := range []struct {
		value outer
		want  uint32
	}{
		{outer{Old: 1, Inner: []inner{{Old: 1}}}, firstVersion},
		{outer{New: 1, Inner: []inner{{Old: 1}}}, 5},
		{outer{New: 1, Inner: []inner{{}, {New: 1}}}, 7},
	} {
		if got := max(newestIn(reflect.ValueOf(c.value)), firstVersion); got != c.want {
			t.Errorf("%+v: version %d, want %d", c.value, got, c.want)
		}
	}
	if !hasMarks(reflect.TypeFor[outer]()) || hasMarks(reflect.TypeFor[CloseEpoch]()) {
		t.Error("types with marks are told wrong")
	}
}

// TestARecordWithAnUnknownFieldIsOfAnotherVersion: no bytes of a later program are
// called damaged.
func TestARecordWithAnUnknownFieldIsOfAnotherVersion(t *testing.T) {
	s := New()
	s.Apply(1, FormCell{ID: 1, Cell: 7})
	s.Apply(2, OpenSession{ID: 2, Owner: "a"})
	b := snapshotBytes(t, s)
	session := []byte{0xa2, 1, 1, 2, 0x61, 'a'} // CBOR: id 1, owner "a"
	at := bytes.Index(b, append([]byte{sectionSessions, 0, 0, 0, byte(len(session)), 0, 0, 0}, session...))
	if at < 0 {
		t.Fatalf("the session is not there: %x", b)
	}
	bad := slices.Insert(b, at+frameHeader+len(session), 0x18, 99, 1) // field 99: 1
	bad[at+4] += 3
	bad[at+frameHeader]++
	reseal(bad)
	if _, err := Restore(bytes.NewReader(bad)); errs.KindOf(err) != errs.Version {
		t.Errorf("got %v", err)
	}
}
