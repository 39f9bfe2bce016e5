package tidy

import (
	"fmt"
	"regexp"
	"strings"
)

var documented = regexp.MustCompile(`(?m)^\| ([a-zA-Z0-9._-]+\.[a-z]+/[^ |]+) \|`)

// ruleDependenciesAreTold: each module that go.mod requires directly or as a tool
// has a line in docs/dependencies.md, and no line is left over.
func ruleDependenciesAreTold(t *tree) (bad []string) {
	const doc = "docs/dependencies.md"
	direct := directModules(t.texts["go.mod"])
	told := map[string]bool{}
	for _, m := range documented.FindAllStringSubmatch(t.texts[doc], -1) {
		told[m[1]] = true
	}
	for m := range direct {
		if !told[m] {
			bad = append(bad, fmt.Sprintf("go.mod: %s has no line in %s: what for, and why this one", m, doc))
		}
	}
	for m := range told {
		if !direct[m] {
			bad = append(bad, fmt.Sprintf("%s: %s is not a direct dependency any more: take the line out", doc, m))
		}
	}
	return bad
}

// directModules reads the direct requirements and the tools' modules of a go.mod.
func directModules(mod string) map[string]bool {
	direct, required := map[string]bool{}, []string{}
	var tools []string
	block := ""
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[1] == "(":
			block = fields[0]
		case line == ")":
			block = ""
		case len(fields) >= 2 && fields[0] == "require":
			required = append(required, fields[1])
			direct[fields[1]] = !strings.HasSuffix(line, "// indirect")
		case len(fields) == 2 && fields[0] == "tool":
			tools = append(tools, fields[1])
		case block == "require" && len(fields) >= 2:
			required = append(required, fields[0])
			direct[fields[0]] = !strings.HasSuffix(line, "// indirect")
		case block == "tool" && len(fields) == 1:
			tools = append(tools, fields[0])
		}
	}
	for _, tool := range tools {
		best := ""
		for _, m := range required {
			if (tool == m || strings.HasPrefix(tool, m+"/")) && len(m) > len(best) {
				best = m
			}
		}
		direct[best] = true
	}
	for m, yes := range direct {
		if !yes || m == "" {
			delete(direct, m)
		}
	}
	return direct
}
