package ctl

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"strake/internal/errs"
)

func TestProfilesAreServedOnLoopbackAlone(t *testing.T) {
	var told strings.Builder
	a := &app{err: &told}
	if _, err := a.serveProfiles(t.Context(), "0.0.0.0:0"); errs.KindOf(err) != errs.PermissionDenied {
		t.Errorf("beyond loopback: %v", err)
	}
	stop, err := a.serveProfiles(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(told.String(), "address=")
	r, err := http.Get("http://" + strings.TrimSpace(address) + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(body), "goroutine profile") {
		t.Errorf("%v, %v, %s", r.Status, err, body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
