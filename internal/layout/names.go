package layout

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// MaxName is the longest part of a name, in characters, each of which is one byte.
const MaxName = 63

// VolumeName is a parsed `[tenant/]volume[@snapshot]`.
type VolumeName struct {
	Tenant, Volume, Snapshot string
}

// String gives the canonical form; the tenant "default" is left out.
func (n VolumeName) String() string {
	s := n.Volume
	if n.Tenant != "" && n.Tenant != DefaultTenant {
		s = n.Tenant + "/" + s
	}
	if n.Snapshot != "" {
		s += "@" + n.Snapshot
	}
	return s
}

// DefaultTenant is the tenant of a name that has none, and DefaultTenantID its number.
const (
	DefaultTenant   = "default"
	DefaultTenantID = TenantID(1)
)

// TenantOf gives the number that schedulers keep a tenant's work apart by. It follows
// from the name (FNV-1a), so that every client gives the same; two tenants may have
// one number, one in four thousand million times, and then share as one. 0, which is
// nobody's, and the number of DefaultTenant are left out.
func TenantOf(name string) TenantID {
	if name == "" || name == DefaultTenant {
		return DefaultTenantID
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return TenantID(h.Sum32()%(1<<32-2)) + DefaultTenantID + 1
}

// DigestDigits is how long a tag's content digest is in hexadecimal: longer than any
// name, so that `volume@digest` names a tag too.
const DigestDigits = 64

// IsDigest tells whether the snapshot part of a name is a content digest.
func IsDigest(s string) bool {
	return len(s) == DigestDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// ParseVolumeName parses `[tenant/]volume[@snapshot]`; in place of a snapshot's name
// may stand a tag's content digest. The error says which part was refused and why.
func ParseVolumeName(s string) (VolumeName, error) {
	n := VolumeName{Tenant: DefaultTenant}
	rest, snapshot, hasSnapshot := strings.Cut(s, "@")
	tenant, volume, hasTenant := strings.Cut(rest, "/")
	if !hasTenant {
		volume = tenant
	} else {
		if err := CheckName("tenant", tenant); err != nil {
			return VolumeName{}, err
		}
		n.Tenant = tenant
	}
	if strings.Contains(volume, "/") {
		return VolumeName{}, fmt.Errorf("name %q has more than one slash; the form is [tenant/]volume[@snapshot]", s)
	}
	if err := CheckName("volume", volume); err != nil {
		return VolumeName{}, err
	}
	n.Volume = volume
	if hasSnapshot {
		if err := CheckName("snapshot", snapshot); err != nil && !IsDigest(snapshot) {
			return VolumeName{}, err
		}
		n.Snapshot = snapshot
	}
	return n, nil
}

// CheckName checks one part of a name: 1 to 63 characters of [a-z0-9._-], the
// first a letter or digit. what names the part in the error.
func CheckName(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%s name is empty", what)
	case utf8.RuneCountInString(s) > MaxName:
		return fmt.Errorf("%s name has %d characters, at most %d are allowed", what, utf8.RuneCountInString(s), MaxName)
	}
	for i, c := range s {
		letterOrDigit := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letterOrDigit && (i == 0 || !strings.ContainsRune("._-", c)) {
			return fmt.Errorf("%s name %q: character %q at position %d is not allowed (a-z, 0-9, and after the first also . _ -)", what, s, c, i+1)
		}
	}
	return nil
}
