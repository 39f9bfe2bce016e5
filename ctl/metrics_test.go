package ctl

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"strake/chunkd"
	"strake/client"
	"strake/meta"
	"strake/meta/server"
)

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// scrape asks an endpoint as Prometheus does that takes native histograms.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	must(t, err)
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	reply, err := http.DefaultClient.Do(r)
	must(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	must(t, err)
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s\n%s", address, reply.Status, body)
	}
	families, in := map[string]*dto.MetricFamily{}, &delimited{body}
	for {
		f := &dto.MetricFamily{}
		if err := protodelim.UnmarshalFrom(in, f); errors.Is(err, io.EOF) {
			return families
		} else if err != nil {
			t.Fatal(err)
		}
		families[f.GetName()] = f
	}
}

// delimited is a protodelim.Reader.
type delimited struct{ left []byte }

func (d *delimited) Read(p []byte) (int, error) {
	if len(d.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.left)
	d.left = d.left[n:]
	return n, nil
}

func (d *delimited) ReadByte() (byte, error) {
	var one [1]byte
	_, err := d.Read(one[:])
	return one[0], err
}

// TestAlertsNameMetricsThatAreServed: a metadata server and a chunk server with work,
// an objective and a reservation serve every metric of deploy/alerts, and the times
// come as native histograms.
func TestAlertsNameMetricsThatAreServed(t *testing.T) {
	log, dir, metaAt, chunkAt := slog.New(slog.DiscardHandler), t.TempDir(), freeAddress(t), freeAddress(t)
	m, err := meta.Start(t.Context(), meta.Config{Listen: "127.0.0.1:0", Dir: filepath.Join(dir, "meta"), Logger: log, Metrics: metaAt,
		ShardLength: 4 << 20, Timing: server.Timing{ServerSilence: time.Second, Control: 50 * time.Millisecond}})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	for n, at := range []string{chunkAt, ""} {
		devices := filepath.Join(dir, string(rune('a'+n)))
		must(t, os.MkdirAll(devices, 0o755))
		s, err := chunkd.Start(t.Context(), chunkd.Config{Cell: m.Addr().String(), Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Domain: "z/r/" + devices, Devices: []string{devices}, Metrics: at, Logger: log})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
	}
	cell, err := client.Dial(t.Context(), client.Config{Addresses: m.Addr().String()})
	must(t, err)
	t.Cleanup(func() { must(t, cell.Close()) })
	class, err := cell.Class(t.Context(), "training")
	must(t, err)
	class.SLO = time.Second
	_, err = cell.SetClass(t.Context(), class)
	must(t, err)
	_, err = cell.CreateVolume(t.Context(), "v", client.VolumeOptions{Size: 64 << 20, K: 1, M: 1})
	must(t, err)
	v, err := cell.Open(t.Context(), "v", client.OpenOptions{Write: true})
	must(t, err)
	t.Cleanup(func() { must(t, v.Close()) })

	patience := time.Now().Add(30 * time.Second)
	for kept := false; !kept; {
		_, err := v.WriteAt(make([]byte, 1<<20), 0)
		must(t, err)
		must(t, v.Flush(t.Context()))
		_, err = cell.Reserve(t.Context(), client.Reservation{Job: "job", Class: "training", Rate: client.Rate{Ops: 1}, TTL: time.Hour}, false)
		if kept = err == nil && scrape(t, chunkAt)["strake_slo_requests_total"] != nil; !kept && time.Now().After(patience) {
			t.Fatalf("nothing could be reserved, or no objective is judged: %v", err)
		}
	}
	chunks, served := scrape(t, chunkAt), scrape(t, metaAt)
	for name, f := range chunks {
		served[name] = f
	}
	rules, err := os.ReadFile("../deploy/alerts/strake.rules.yml")
	must(t, err)
	names := regexp.MustCompile(`\bstrake_[a-z_0-9]+`).FindAllString(string(rules), -1)
	if len(names) < 8 {
		t.Errorf("only %v in the rules", names)
	}
	for _, name := range names {
		if served[name] == nil {
			t.Errorf("a rule asks for %s, which nobody serves", name)
		}
	}
	for _, name := range []string{"strake_queue_seconds", "strake_service_seconds"} {
		f := served[name]
		if f == nil {
			t.Fatalf("no %s", name)
		}
		if h := f.Metric[0].Histogram; h == nil || h.GetSampleCount() == 0 || h.Schema == nil || len(h.PositiveSpan) == 0 {
			t.Errorf("%s is no native histogram: %v", name, h)
		}
	}
}
