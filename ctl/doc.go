// Package ctl is the strake command: one file per noun or verb, each a thin layer
// over the client library and over the daemons' Run functions. It owns the words
// on the command line, what is printed, and exit codes; it decides nothing about
// data.
//
// What every verb promises (docs and tests rely on it):
//
// I1. Exit code 0: done. 1: refused or failed, with a typed error on stderr.
// 2: wrong usage. `strake status` alone gives 0 healthy, 1 degraded, 2 at risk.
//
// I2. With -o json, stdout carries JSON alone, and an error is one line on stderr:
// {"error":{"kind":...,"message":...,"hint":...}}.
//
// I3. Whatever destroys data says what would be lost and wants --yes.
//
// I4. SIGTERM and SIGINT end every verb in good order; a daemon exits 0 then.
//
// A setting comes from a flag, else from a STRAKE_* variable, else from the
// configuration file, else from its default (config.go).
package ctl
