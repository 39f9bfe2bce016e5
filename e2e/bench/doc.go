// Package bench measures a cell: throughput, latency, processor time and memory of
// the read and write paths, each beside what bare TCP on the same machine does at
// that moment.
//
// It owns the cases, the worker processes that make the load, the accounting and
// the report; the words of the command line are ctl's. It uses the client library
// as any program does and knows the servers only by their processes and by their
// control API.
//
// How a measurement runs. The program that the user started coordinates and is
// idle meanwhile. Workers, processes of the same binary, make the load: they take
// orders as lines of JSON on stdin and answer on stdout (worker.go). A case is:
// open and warm up on every worker, read the meters, run (the barrier: all workers
// get the order at once), read the meters again, check what was written.
//
// What the figures mean:
//
// B1. Processor time is that of all processes: workers, chunk servers, metadata
// servers; from the kernel's clock of each process. Servers on other machines are
// not counted, and the result says so.
//
// B2. other_cores_busy is what /proc/stat counted as busy less all of B1's
// processes: a figure taken while it is not near zero is too low.
//
// B3. Nothing wrong is measured. Each block holds its number and a generation
// (content.go); the ends of each read are looked at, whole blocks of a sample are
// compared, and a sample of what was written is read back after the flush.
//
// B4. A ceiling runs in the same process structure right before its case, so that
// a noisy machine slows both; ratio_to_ceiling is taken pair by pair.
//
// B5. The working set, its seed and the order of offsets are the same in each run.
//
// B6. Nothing is left behind: workers and servers end by pid, and by the kernel
// when this program dies; a throwaway cell's directory is removed.
//
// Concurrency: one goroutine coordinates. In a worker each slot of the queue depth
// is one goroutine; what they share is atomic or under recorder.mu.
package bench
