// Package telemetry is what every daemon has of measurements: a Prometheus endpoint
// with native histograms, Go's own figures (GC pauses among them), and what the
// machine's network does.
//
// It owns the endpoint and the reading of the machine; each role makes its own
// figures, as a prometheus.Collector that is asked at each scrape, so that nothing
// is counted twice. There is no registry of the process: each endpoint has one.
//
// All functions are safe for concurrent use.
package telemetry
