# Reads the output of a part of CI and repeats what failed: each failing test with
# the first and last lines that it wrote, each panic with its first, packages that
# did not build, and those that failed though no test did (one that leaks goroutines)
# with what they wrote; where there is none of these, the last lines of all.
BEGIN { most = 12; first = 4; limit = 300; bares = tests = panics = before = 0 }

function keep(who, line) { said[who, count[who]++] = substr(line, 1, limit) }

{ last[NR % most] = $0 }
/^=== (RUN|NAME|CONT|PAUSE) / { now = $3; next }
/^ *--- (PASS|SKIP): / { now = ""; next }
/^ *--- FAIL: / { now = $3; failed[tests++] = now; next }
/^(ok|\?)[ \t]/ { now = ""; leave(); next }
/^(FAIL|PASS)$/ { next }
/^FAIL[ \t]/ { if ($0 ~ /\[/ || tests + panics == before) { bare[bares] = $0; wrote[bares++] = outside }; now = ""; leave(); next }
/^(panic: |fatal error: |WARNING: DATA RACE)/ && !now_panics[now] { panics++; now_panics[now] = 1; now = "#" panics; keep(now, $0); next }
now == "" && lines++ < most { outside = outside "        " substr($0, 1, limit) "\n" }
{ keep(now, $0) }

function leave() { before = tests + panics; outside = ""; lines = 0 }

function show(who, from, to,  i) { for (i = from; i < to; i++) print "        " said[who, i] }

END {
  for (i = 0; i < tests; i++) {
    if (told[failed[i]]++) continue
    print "    " failed[i]
    n = count[failed[i]]
    if (n > most) { show(failed[i], 0, first); print "        ..."; show(failed[i], n - most + first, n) } else show(failed[i], 0, n)
  }
  for (i = 1; i <= panics; i++) { n = count["#" i]; print "    " said["#" i, 0]; show("#" i, 1, n < most ? n : most) }
  for (i = 0; i < bares; i++) printf "    %s\n%s", bare[i], wrote[i]
  if (tests + panics + bares == 0) for (i = NR < most ? 1 : NR - most + 1; i <= NR; i++) print "    " substr(last[i % most], 1, limit)
}
