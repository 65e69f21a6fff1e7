# SPDX-License-Identifier: BSD-2-Clause
# awk -f cited.awk ALGORITHMS.md invariant.def source ... : what the page cites and is not there, and what the sources cite of the page.
#
#   `folder/file.c: f(), g()`   the file defines these functions
#   `folder/file`               the file is there
#   S1, L2                      a row of invariant.def
#   Planted: A, B.              patches in tests/sim/mutant
#   ALGORITHMS.md, X; Y.        in a source: sections of the page
FILENAME == ARGV[1] {
	page = page " " $0
	if (sub(/^## /, "")) section[$0]
	next
}
/^INVARIANT\(/ { split($0, row, /[(,]/); known[row[2]]; next }

# The body of a function begins with a line of its own.
/^[a-z]/ {
	line = $0
	gsub(/__attribute__\(\([a-z]+\)\) */, "", line)
	if (match(line, /[A-Za-z0-9_]+\(/)) head = substr(line, RSTART, RLENGTH - 1)
}
$0 == "{" { defines[FILENAME, head]; where[head] = where[head] " " FILENAME }

/ALGORITHMS\.md/ {
	names = $0
	if (!sub(/.*ALGORITHMS\.md, /, "", names) || !sub(/\..*/, "", names)) names = "no section"
	n = split(names, name, "; ")
	for (i = 1; i <= n; i++) if (!(name[i] in section)) print FILENAME ":" FNR " cites a section that is not there: " name[i]
}

function exists(path,    line, there) {
	there = (getline line <path) >= 0
	close(path)
	return there
}

function look_at_code(cited,    path, rest, n, f, i) {
	path = cited
	rest = ""
	if (match(cited, /: /)) { path = substr(cited, 1, RSTART - 1); rest = substr(cited, RSTART + 2) }
	if (path !~ /^[a-z]+\/[A-Za-z0-9_.\/-]*[a-z]$/) return
	if (!exists(path)) print "there is no " path
	n = split(rest, f, /\(\)(, *)?/)
	for (i = 1; i <= n; i++)
		if (f[i] != "" && !((path, f[i]) in defines)) print path " does not define " f[i] "()" (f[i] in where ? ", but" where[f[i]] " does" : "")
}

function look_at_words(text,    n, word, i) {
	n = split(text, word, /[^A-Z0-9_]+/)
	for (i = 1; i <= n; i++) if (word[i] ~ /^[SL][0-9]+$/ && !(word[i] in known)) print "there is no invariant " word[i]
}

function look_at_planted(text,    n, word, i) {
	sub(/\..*/, "", text)
	n = split(text, word, /[, ]+/)
	for (i = 1; i <= n; i++) if (word[i] != "" && !exists("tests/sim/mutant/" word[i] ".patch")) print "there is no mistake " word[i]
}

END {
	gsub(/[ \t]+/, " ", page)
	n = split(page, part, "`")
	for (i = 2; i <= n; i += 2) look_at_code(part[i])
	for (i = 1; i <= n; i += 2) look_at_words(part[i])
	n = split(page, part, "Planted: ")
	for (i = 2; i <= n; i++) look_at_planted(part[i])
}
