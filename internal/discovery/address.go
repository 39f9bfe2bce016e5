package discovery

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	scheme      = "etcd://"
	defaultPort = "2379"
	maxHosts    = 16
	hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
)

// Address says where etcd is and which cell is meant, as
// `etcd://HOST[:PORT][,...][/CELL][?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE]`.
type Address struct {
	Hosts []string // HOST:PORT, at least one
	Cell  string   // empty: none in particular

	CA, Cert, Key string // files; TLS is spoken when any is set
	User          string
	PasswordFile  string // holds the user's password; a trailing newline does not count
}

// IsURL tells whether an address of a cell is one for Parse.
func IsURL(s string) bool { return strings.HasPrefix(s, scheme) }

// Parse reads an etcd URL. Error: InvalidArgument.
func Parse(s string) (Address, error) {
	var a Address
	rest, ok := strings.CutPrefix(s, scheme)
	if !ok {
		return a, refuse(s, "it does not begin with %s", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, cell, _ := strings.Cut(rest, "/")
	if a.Cell = strings.TrimSuffix(cell, "/"); a.Cell != "" {
		if err := layout.CheckName("cell", a.Cell); err != nil {
			return a, refuse(s, "%v", err)
		}
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h = strings.TrimSpace(h); h == "" {
			continue
		}
		at, ok := hostPort(h)
		if !ok {
			return a, refuse(s, "%q is no HOST or HOST:PORT", h)
		}
		a.Hosts = append(a.Hosts, at)
	}
	if len(a.Hosts) == 0 || len(a.Hosts) > maxHosts {
		return a, refuse(s, "%d hosts, want 1 to %d", len(a.Hosts), maxHosts)
	}
	return a, a.options(s, query)
}

// hostPort reads HOST, HOST:PORT, [IPv6] or [IPv6]:PORT and gives it with a port.
func hostPort(s string) (string, bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = s, defaultPort
		if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
			host = s[1 : len(s)-1]
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '+' {
		return "", false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil && !isName(host) || addr.Zone() != "" && !isName(addr.Zone()) {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}

// isName tells whether a host can be a name: letters, digits, dots and dashes.
func isName(host string) bool {
	return host != "" && !strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(hostLetters, r) })
}

// options reads what stands behind the question mark.
func (a *Address) options(s, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return refuse(s, "%v", err)
	}
	fields := map[string]*string{"ca": &a.CA, "cert": &a.Cert, "key": &a.Key, "user": &a.User, "password-file": &a.PasswordFile}
	for name, given := range values {
		field := fields[name]
		if field == nil || len(given) != 1 || given[0] == "" {
			return refuse(s, "option %q: each of ca, cert, key, user and password-file can be given once", name)
		}
		*field = given[0]
	}
	if (a.Cert == "") != (a.Key == "") {
		return refuse(s, "cert and key go together")
	}
	if (a.User == "") != (a.PasswordFile == "") {
		return refuse(s, "user and password-file go together")
	}
	return nil
}

func refuse(s, format string, args ...any) error {
	return errs.New(errs.InvalidArgument, "find etcd by "+s, format, args...).
		WithHint("write etcd://HOST:PORT[,HOST:PORT...]/CELL, and behind it ?ca=FILE, cert=FILE&key=FILE, user=NAME&password-file=FILE where etcd wants them")
}

// String gives the URL; Parse reads it back.
func (a Address) String() string {
	values := url.Values{}
	for name, value := range map[string]string{"ca": a.CA, "cert": a.Cert, "key": a.Key, "user": a.User, "password-file": a.PasswordFile} {
		if value != "" {
			values.Set(name, value)
		}
	}
	s := scheme + strings.Join(a.Hosts, ",") + "/" + a.Cell
	if len(values) > 0 {
		s += "?" + values.Encode()
	}
	return s
}

// Of gives the address of a cell in the same fleet.
func (a Address) Of(cell string) Address {
	a.Cell = cell
	return a
}

// named refuses an address without a cell.
func (a Address) named() error {
	if a.Cell == "" {
		return refuse(a.String(), "it names no cell")
	}
	return nil
}

// password reads the user's password, empty when there is no user.
func (a Address) password() (string, error) {
	if a.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return "", errs.As(err, errs.InvalidArgument, "read etcd's password")
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
