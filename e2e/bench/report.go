package bench

import (
	"encoding/json"
	"os"
	"path/filepath"

	"strake/internal/errs"
)

// WriteReport writes DIR/report.html and DIR/bench.json and gives the path of the
// former. The same result gives the same bytes.
func WriteReport(dir string, r *Result) (string, error) {
	page, err := reportPage(r)
	if err != nil {
		return "", err
	}
	return writeReport(dir, r, page)
}

// writeReport writes a page and, beside it, the result that it shows.
func writeReport(dir string, result any, page []byte) (string, error) {
	raw, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return "", errs.As(err, errs.Internal, "write the result")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", errs.As(err, errs.Unavailable, "make a directory for the report")
	}
	path := filepath.Join(dir, "report.html")
	for name, b := range map[string][]byte{filepath.Join(dir, "bench.json"): append(raw, '\n'), path: page} {
		if err := os.WriteFile(name, b, 0o644); err != nil {
			return "", errs.As(err, errs.Unavailable, "write the report")
		}
	}
	return path, nil
}
