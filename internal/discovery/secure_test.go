package discovery

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"strake/internal/discovery/etcdtest"
	"strake/internal/errs"
)

// certificate writes a key and a certificate that signs itself and serves both ends.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})))
	return cert, key
}

// secure starts an etcd that wants certificates and passwords, and gives the
// address of a cell by which a user gets in who may do what strake needs.
func secure(t *testing.T) Address {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	e := etcdtest.Start(t, "https", "--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert, "--client-cert-auth")
	a := at(t, e, "prod")
	a.CA, a.Cert, a.Key = cert, cert, key
	cfg, err := config(a)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err := range []error{
		second(admin.UserAdd(ctx, "root", "r00t")), second(admin.UserGrantRole(ctx, "root", "root")),
		second(admin.RoleAdd(ctx, "strake")), second(admin.UserAdd(ctx, "strake", "secret")), second(admin.UserGrantRole(ctx, "strake", "strake")),
		second(admin.RoleGrantPermission(ctx, "strake", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))),
		second(admin.AuthEnable(ctx)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.User, a.PasswordFile = "strake", filepath.Join(dir, "password")
	writeFile(t, a.PasswordFile, "secret\n")
	return a
}

func second[T any](_ T, err error) error { return err }

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
