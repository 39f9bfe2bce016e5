package tidy

import (
	"go/ast"
	"slices"
	"strings"
)

// cores are the pure packages: a value in, a value out. Replaying the same inputs
// must give the same bytes, so they may not reach the machine at all.
var cores = []string{
	"internal/layout", "internal/errs",
	"proto/stripe", "proto/frame",
	"meta/state", "meta/placement", "meta/reconcile",
	"chunkd/format", "chunkd/sched/mclock",
	"client/internal/write", "client/internal/recovery", "client/internal/extent", "client/internal/read", "client/internal/ahead", "client/internal/clean",
}

// impure are what no core imports; a name ending in / stands for all below it.
var impure = []string{
	"os", "os/", "net", "net/", "sync", "sync/", "log", "log/", "context", "io/fs", "io/ioutil",
	"syscall", "unsafe", "golang.org/x/sys/", "crypto/rand", "runtime",
}

// exempt are the imports that a core may have all the same, with the reason.
var exempt = map[string]string{
	"internal/errs context": "its kinds stand for context errors",
}

// clockReads are the functions of package time that look at a clock.
var clockReads = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// ruleCoresArePure: no disks, sockets, locks, contexts, loggers, clocks, global
// randomness or goroutines in a core.
func ruleCoresArePure(t *tree) (bad []string) {
	for _, f := range t.product() {
		if !slices.Contains(cores, f.dir) {
			continue
		}
		f.imports(func(p string, s *ast.ImportSpec) {
			if isImpure(p) && exempt[f.dir+" "+p] == "" {
				bad = append(bad, t.at(s, "a pure core imports %s; the shell owns that", p))
			}
		})
		f.uses("time", func(name string, n ast.Node) {
			if slices.Contains(clockReads, name) {
				bad = append(bad, t.at(n, "a pure core calls time.%s; take the time as an argument", name))
			}
		})
		for _, random := range []string{"math/rand", "math/rand/v2"} {
			f.uses(random, func(name string, n ast.Node) {
				if !strings.HasPrefix(name, "New") && name != "Rand" && name != "Source" && name != "PCG" {
					bad = append(bad, t.at(n, "a pure core draws from the global source rand.%s; take a source as an argument", name))
				}
			})
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				bad = append(bad, t.at(g, "a pure core starts a goroutine"))
			}
			return true
		})
	}
	return bad
}

func isImpure(importPath string) bool {
	return slices.ContainsFunc(impure, func(p string) bool {
		return p == importPath || strings.HasSuffix(p, "/") && strings.HasPrefix(importPath, p)
	})
}
