// Package planted holds the bugs that test the tester: mistakes that systems like
// this one have made, put into the product's own code at the place where they
// would be made. Builds without the tag `planted` have none: there Is is false by
// a constant, and the compiler drops the bug.
//
// To plant one more: add it to the list in bugs.go, write
// `if planted.Is(planted.YourBug) { … }` where it belongs, and run
// `make test-the-tester`. Nothing else knows the list; the seeded cluster's
// checkers must not know a bug.
//
// At most one bug is planted at a time, before anything runs.
package planted
