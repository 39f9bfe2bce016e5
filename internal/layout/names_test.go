package layout

import "testing"

// TestTenantsHaveNumbersOfTheirOwn, which are frozen: clients of all versions must
// give one tenant's work the same.
func TestTenantsHaveNumbersOfTheirOwn(t *testing.T) {
	for name, want := range map[string]TenantID{"": 1, "default": 1, "a": 3826002222, "ml-team": 930451084} {
		if got := TenantOf(name); got != want {
			t.Errorf("tenant %q is %d, want %d", name, got, want)
		}
	}
	seen := map[TenantID]string{}
	for i := range 4096 {
		name := string([]byte{'t', byte('a' + i%16), byte('a' + i/16%16), byte('a' + i/256)})
		n := TenantOf(name)
		if other, taken := seen[n]; taken || n < 2 {
			t.Fatalf("tenant %s has number %d, which is %q's", name, n, other)
		}
		seen[n] = name
	}
}
