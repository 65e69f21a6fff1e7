# SPDX-License-Identifier: BSD-2-Clause
# awk [-v folder=folder] -f plant.awk mutant.patch ... : applies unified patches, each to what those before it have left, leaves the changed files below the
# folder, and prints which files these are. Without a folder it only checks that each applies. What a hunk expects must stand, to the letter, in the function that the hunk names, and only once there. The
# line numbers do not count. A patch that no longer fits so would plant another mistake, or none.

function complain(why) {
	print patch ": " why >"/dev/stderr"
	status = 1
}

# Reads the file: line[i] stands in the function inside[i], as diff -p sees it.
function take(    path, text, head) {
	path = folder && (getline text <(folder "/" file)) > 0 ? folder "/" file : file
	close(folder "/" file)
	for (count = 0; (getline text <path) > 0;) {
		line[++count] = text
		inside[count] = head
		if (text ~ /^[A-Za-z_]/) head = text
	}
	close(path)
	if (!count) complain("there is no " file)
}

function fits(at,    i) {
	for (i = 1; i <= olds; i++) if (line[at + i] != old[i]) return 0
	return index(inside[at + before], name) == 1
}

# Finds the place of the hunk, and notes which lines go there and which come.
function apply(    places, place, at, i) {
	if (!rows) return
	for (at = 0; at + olds <= count; at++) if (fits(at)) { places++; place = at }
	if (places != 1) complain(places + 0 " places in " file ", " name ": " row[before])
	for (i = 1; i <= rows && places == 1; i++) {
		if (row[i] ~ /^\+/) comes[place] = comes[place] substr(row[i], 2) "\n"
		else if (row[i] ~ /^-/) goes[++place]
		else place++
	}
	rows = 0
}

function finish(    path, i) {
	apply()
	if (folder && file) {
		path = folder "/" file
		match(path, /.*\//)
		system("mkdir -p " substr(path, 1, RLENGTH))
		printf "%s", comes[0] >path
		for (i = 1; i <= count; i++) printf "%s%s", i in goes ? "" : line[i] "\n", comes[i] >path
		close(path)
		print file
	}
	file = ""
	split("", goes)
	split("", comes)
}

function next_patch() {
	finish()
	if (patch && !hunks) complain("changes nothing")
	patch = FILENAME
	hunks = 0
}

FNR == 1 { next_patch() }
/^--- a\// { finish(); file = substr($0, 7); take(); next }
/^\+\+\+ b\// { next }
/^@@ / {
	apply()
	hunks++
	name = $0
	sub(/^@@ [^@]*@@ */, "", name)
	sub(/\(.*/, "", name)
	olds = 0
	before = 1 # the first line of the hunk that is not context
	next
}
file {
	row[++rows] = $0
	if (/^[ -]/) old[++olds] = substr($0, 2)
	if (/^ / && rows == before) before++
}
END { next_patch(); exit status }
