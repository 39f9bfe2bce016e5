// Package transporttest is the suite that every transport passes, and a small
// frame server to run it against.
package transporttest
