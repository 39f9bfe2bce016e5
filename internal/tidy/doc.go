// Package tidy is the house rules of this repository, kept as tests over its
// source: which packages are pure, who may import whom, how long a function may
// be, which decoders are fuzzed. A rule that only stands in a document is
// forgotten; one that fails a test is not.
//
// It owns no product code and nothing imports it. A rule is a function from the
// parsed tree to a list of complaints, each beginning with a place that an editor
// can jump to; every rule is shown a small tree that breaks it, so that a rule
// which no longer sees anything fails too. testdata/long.txt lists the functions
// that were too long when they came in: lines may leave it, none may join.
package tidy
