package telemetry

import (
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Network is what the machine's interfaces did since its start, see readNetwork.
type Network struct {
	In, Out uint64 // bytes
	Link    uint64 // bytes a second of the fastest that tells; 0: none does
}

// ReadNetwork reads the interfaces; where there are none to read, all is 0.
func ReadNetwork() Network { return readNetwork("/sys/class/net") }

// readNetwork reads those that are hardware: what goes through a bond, a bridge or a
// container's end goes through one of them too, and would count twice. Only where
// there is none, as inside a container, all but loopback count.
func readNetwork(root string) (n Network) {
	all, _ := filepath.Glob(root + "/*") // the pattern is well formed
	hardware, _ := filepath.Glob(root + "/*/device")
	for i, device := range hardware {
		hardware[i] = filepath.Dir(device)
	}
	if len(hardware) == 0 {
		hardware = slices.DeleteFunc(all, func(dir string) bool { return filepath.Base(dir) == "lo" })
	}
	for _, dir := range hardware {
		n.In += number(dir + "/statistics/rx_bytes")
		n.Out += number(dir + "/statistics/tx_bytes")
		n.Link = max(n.Link, number(dir+"/speed")*1e6/8)
	}
	return n
}

// number reads a file that holds one; one below zero, as of a link that is down,
// counts as 0.
func number(path string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// GCPauses is how long the garbage collector stopped this process since its start,
// in ns, by the histogram that Go keeps: to within its buckets.
func GCPauses() uint64 {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h, sum := sample[0].Value.Float64Histogram(), 0.0
	for i, n := range h.Counts {
		if n > 0 {
			sum += float64(n) * max(0, h.Buckets[i]) // where the bucket begins
		}
	}
	return uint64(sum * 1e9)
}

// Allocations is how many objects this process has allocated on its heap since its start.
func Allocations() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// network is a collector of ReadNetwork.
type network struct{}

var (
	netBytes = prometheus.NewDesc("strake_network_bytes_total", "Bytes of the machine's network hardware; where none shows, of all interfaces but loopback.", []string{"direction"}, nil)
	netLink  = prometheus.NewDesc("strake_network_link_bytes_per_second", "Speed of the fastest interface; 0 when none tells.", nil, nil)
)

// Describe implements prometheus.Collector.
func (network) Describe(ch chan<- *prometheus.Desc) { ch <- netBytes; ch <- netLink }

// Collect implements prometheus.Collector.
func (network) Collect(ch chan<- prometheus.Metric) {
	n := ReadNetwork()
	ch <- prometheus.MustNewConstMetric(netBytes, prometheus.CounterValue, float64(n.In), "in")
	ch <- prometheus.MustNewConstMetric(netBytes, prometheus.CounterValue, float64(n.Out), "out")
	ch <- prometheus.MustNewConstMetric(netLink, prometheus.GaugeValue, float64(n.Link))
}
