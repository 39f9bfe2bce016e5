package discovery

import (
	"reflect"
	"slices"
	"testing"

	"strake/internal/errs"
)

func TestURLsOfEtcd(t *testing.T) {
	for text, want := range map[string]Address{
		"etcd://a/prod":             {Hosts: []string{"a:2379"}, Cell: "prod"},
		"etcd://a:1,b:2 , c/x":      {Hosts: []string{"a:1", "b:2", "c:2379"}, Cell: "x"},
		"etcd://a":                  {Hosts: []string{"a:2379"}},
		"etcd://a/":                 {Hosts: []string{"a:2379"}},
		"etcd://[::1]:7,[fe80::1]/": {Hosts: []string{"[::1]:7", "[fe80::1]:2379"}},
		"etcd://a/c?ca=/x/ca.pem&cert=c&key=k&user=u&password-file=%2Fp": {Hosts: []string{"a:2379"}, Cell: "c",
			CA: "/x/ca.pem", Cert: "c", Key: "k", User: "u", PasswordFile: "/p"},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"a:7400", "etcd://", "etcd:///c", "etcd://a/C", "etcd://a/b/c", "etcd://a/c?x=1",
		"etcd://a/c?user=u", "etcd://a/c?cert=x", "etcd://a/c?ca=1&ca=2", "etcd://a/c?ca=%zz",
		"etcd://[ 0", "etcd://a b/c", "etcd://a:b:c/x", "etcd://a:0/c", "etcd://:2379/c", "etcd://a:70000/c"} {
		if _, err := Parse(text); errs.KindOf(err) != errs.InvalidArgument || errs.HintOf(err) == "" {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("etcd://a:1,b/c?ca=x&user=u&password-file=p")
	f.Add("etcd://[::1]/x")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(a.String())
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Fatalf("%q: %+v, then by %q: %+v, %v", s, a, a, again, err)
		}
	})
}

// A key of the directory is one that strake writes, or it is left out; so every
// cell that is listed can be asked for.
func FuzzDirectory(f *testing.F) {
	f.Add("a/meta/m:1", "{}")
	f.Add("a/meta/m", "{}")
	f.Add("a/id", "00000000000000ff")
	f.Add("a/id", "fffffffffffffffff")
	f.Add("a/founders", "m:1")
	f.Add("A b/id", "00000000000000ff")
	f.Fuzz(func(t *testing.T, key, value string) {
		byName := map[string]*Cell{}
		note(byName, key, value)
		for name, c := range byName {
			written := []string{idOf(name), foundersOf(name)}
			for _, server := range c.Addresses {
				written = []string{endpointsOf(name) + "/" + server}
			}
			if c.Name != name || !slices.Contains(written, prefix+key) || c.ID != 0 && formatID(c.ID) != value {
				t.Fatalf("%q, %q gave %+v", key, value, c)
			}
			if _, err := Parse(Address{Hosts: []string{"e:1"}}.Of(name).String()); err != nil {
				t.Fatalf("%q: nobody can ask for cell %q: %v", key, name, err)
			}
		}
	})
}
