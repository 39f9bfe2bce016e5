package tidy

import (
	"go/ast"
	"slices"
	"strings"
)

// mayImport is who may import whom, within this module. The longest entry that
// holds a folder counts for it; "x/" on the right stands for x and all below it.
// Arrows point down only (design §15).
var mayImport = map[string][]string{
	// The ground: what more than one role needs.
	"internal/layout":        {},
	"internal/planted":       {},
	"internal/errs":          {},
	"internal/erasure":       {"internal/errs", "internal/layout"},
	"internal/erasure/build": {"internal/errs", "internal/layout", "internal/erasure", "proto/stripe"},
	"internal/vfs":           {"internal/errs", "internal/layout", "internal/vfs/"},
	"internal/tls":           {"internal/errs"},
	"internal/health":        {"internal/errs", "internal/tls", "proto/pb"},
	"internal/discovery":     {"internal/errs", "internal/layout"},
	"internal/dial":          {"internal/discovery", "internal/errs", "internal/tls", "proto/pb"},
	"internal/tidy":          {},
	"internal/qos":           {"internal/errs", "internal/layout"},
	"internal/telemetry":     {"internal/errs", "internal/tls"},
	"internal":               {"internal/", "proto/"},
	// The contract.
	"proto/stripe":   {"internal/errs", "internal/layout"},
	"proto/frame":    {"internal/errs", "internal/layout", "proto/stripe"},
	"proto/pb":       {"internal/errs"},
	"proto/generate": {},
	"proto":          {},
	// The roles: beside each other, known to each other by proto alone.
	"meta/state":               {"internal/errs", "internal/layout", "internal/qos", "proto/stripe", "meta/placement"},
	"meta/placement":           {"internal/errs", "internal/layout", "meta/state"},
	"meta/reconcile":           {"internal/errs", "internal/layout", "meta/placement", "meta/state"},
	"meta/replica":             {"internal/", "meta/replica/"},
	"meta/backup":              {"internal/errs"},
	"meta":                     {"internal/", "meta/", "proto/"},
	"chunkd/format":            {"internal/errs", "internal/layout", "proto/stripe"},
	"chunkd/sched":             {"internal/errs", "internal/layout", "internal/qos", "chunkd/sched/"},
	"chunkd":                   {"internal/", "chunkd/", "proto/"},
	"client/internal/extent":   {"internal/errs", "internal/layout", "proto/stripe"},
	"client/internal/write":    {"internal/errs", "internal/layout", "proto/stripe", "proto/frame"},
	"client/internal/read":     {"internal/errs", "internal/layout", "proto/stripe", "proto/frame", "client/internal/extent"},
	"client/internal/clean":    {"internal/errs", "internal/layout", "proto/stripe", "client/internal/extent"},
	"client/internal/recovery": {"internal/errs", "internal/layout", "proto/stripe"},
	"client":                   {"internal/", "client/", "proto/"},
	// The top.
	"ctl": {"internal/", "proto/", "meta/", "chunkd/", "client/", "e2e/bench", "e2e/cluster"}, // `strake bench` runs what e2e/bench measures
	"cmd": {"ctl"},
	"e2e": {"internal/", "proto/", "meta/", "chunkd/", "client/", "ctl", "e2e/"},
}

const module = "strake/"

// ruleImportsPointDown: each import of this module stands in the table.
func ruleImportsPointDown(t *tree) (bad []string) {
	for _, f := range t.written() {
		allowed, ok := allowedFor(f.dir)
		if f.test || strings.HasSuffix(f.dir, "test") {
			// A test may put its package together with others of the same role.
			role, _ := allowedFor(strings.Split(f.dir, "/")[0])
			allowed = append(slices.Clone(allowed), role...)
		}
		f.imports(func(p string, s *ast.ImportSpec) {
			to, mine := strings.CutPrefix(p, module)
			switch {
			case !mine || to == f.dir || to == "internal/planted": // another module, or a test of its own package
			case !ok:
				bad = append(bad, t.at(s, "%s has no line in the table of imports", f.dir))
			case to == "internal/tidy":
				bad = append(bad, t.at(s, "%s imports %s, which nothing may", f.dir, to))
			case !slices.ContainsFunc(allowed, func(a string) bool { return a == to || strings.HasPrefix(to+"/", a) && strings.HasSuffix(a, "/") }):
				bad = append(bad, t.at(s, "%s may not import %s; arrows point down only", f.dir, to))
			}
		})
	}
	return bad
}

// allowedFor finds the longest entry that holds a folder.
func allowedFor(dir string) (allowed []string, ok bool) {
	best := -1
	for prefix, list := range mayImport {
		if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) > best {
			best, allowed, ok = len(prefix), list, true
		}
	}
	return allowed, ok
}
