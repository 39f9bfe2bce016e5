package telemetry_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"strake/internal/errs"
	"strake/internal/telemetry"
	"strake/internal/tls"
)

// TestAnEndpointServesItsRolesAndGosFigures, and leaves nothing behind.
func TestAnEndpointServesItsRolesAndGosFigures(t *testing.T) {
	own := prometheus.NewCounter(prometheus.CounterOpts{Name: "strake_own_total", Help: "For this test."})
	own.Add(41)
	e, err := telemetry.Listen(t.Context(), tls.Policy{}, "127.0.0.1:0", slog.New(slog.DiscardHandler), own)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := http.Get("http://" + e.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"strake_own_total 41", "strake_network_bytes_total", "process_cpu_seconds_total", "go_sched_pauses_total_gc_seconds"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in what is served", want)
		}
	}
}

// TestMetricsKeepToThePolicyOfListeners: nobody beyond loopback reads them unless
// that was allowed.
func TestMetricsKeepToThePolicyOfListeners(t *testing.T) {
	_, err := telemetry.Listen(t.Context(), tls.Policy{}, "0.0.0.0:0", slog.New(slog.DiscardHandler))
	if errs.KindOf(err) != errs.PermissionDenied {
		t.Errorf("%v, want it refused", err)
	}
	var none *telemetry.Endpoint
	none.Close()
}

// TestHistogramsAreNative: counts, sum and the buckets that hold the values.
func TestHistogramsAreNative(t *testing.T) {
	desc := prometheus.NewDesc("h", "help", []string{"a"}, nil)
	ends := []time.Duration{time.Millisecond, 1500 * time.Microsecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond}
	m := telemetry.Histogram(desc, []uint64{0, 0, 0, 5, 2}, 25*time.Millisecond, func(i int) time.Duration { return ends[i] }, "x")
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	h := out.Histogram
	if h.GetSampleCount() != 7 || h.GetSampleSum() != 0.025 || h.GetSchema() != 1 {
		t.Errorf("%v", h)
	}
	// 2 to 3 ms lies in (1.95, 2.76] ms, 3 to 4 ms in (2.76, 3.9] ms: schema 1.
	if s := h.GetPositiveSpan(); len(s) != 1 || s[0].GetOffset() != -17 || s[0].GetLength() != 2 {
		t.Errorf("spans %v", s)
	}
	if d := h.GetPositiveDelta(); len(d) != 2 || d[0] != 5 || d[1] != -3 {
		t.Errorf("deltas %v", d)
	}
}

// TestTheMachineIsRead: whatever it is, reading it does no harm and pauses only grow.
func TestTheMachineIsRead(t *testing.T) {
	before := telemetry.GCPauses()
	telemetry.ReadNetwork()
	if after := telemetry.GCPauses(); after < before {
		t.Errorf("pauses went from %d to %d", before, after)
	}
}
