package discovery

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"strake/internal/discovery/etcdtest"
	"strake/internal/errs"
)

// secure starts an etcd that wants certificates and passwords, and gives the
// address of a cell by which a user gets in who may do what strake needs.
func secure(t *testing.T) Address {
	t.Helper()
	dir := t.TempDir()
	cert, key, err := etcdtest.Certificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := etcdtest.Start(t, "https", "--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert, "--client-cert-auth")
	a := at(t, e, "prod")
	a.CA, a.Cert, a.Key = cert, cert, key
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg, err := config(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := etcdtest.Lock(ctx, cfg, prefix, "strake", "secret"); err != nil {
		t.Fatal(err)
	}
	a.User, a.PasswordFile = "strake", filepath.Join(dir, "password")
	writeFile(t, a.PasswordFile, "secret\n")
	return a
}

func TestEtcdMayWantCertificateAndPassword(t *testing.T) {
	a := secure(t)
	r := register(t, a, "m1:7400")
	r.SetCell(3)
	sees(t, follow(t, a), "m1:7400")
	eventually(t, "the id is there", func() bool { return cellOf(t, a).ID == 3 })

	wrong := a
	wrong.PasswordFile = filepath.Join(t.TempDir(), "password")
	writeFile(t, wrong.PasswordFile, "guess")
	if _, err := follow(t, wrong).Addresses(t.Context()); errs.KindOf(err) != errs.PermissionDenied {
		t.Errorf("a wrong password: %v", err)
	}
	nobody := a
	nobody.User, nobody.PasswordFile = "", ""
	if _, err := Cells(t.Context(), nobody); errs.KindOf(err) != errs.PermissionDenied {
		t.Errorf("no password: %v", err)
	}
	bare := a
	bare.Cert, bare.Key = "", ""
	if _, err := Cells(t.Context(), bare); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("no certificate: %v", err)
	}
}
