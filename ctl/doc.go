// Package ctl is the strake command: one file per verb, each a thin layer over
// the client library and the control APIs.
package ctl
