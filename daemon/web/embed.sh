#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# embed.sh folder page.html page.css page.js : writes folder/page.c, the page with its styles and its script inside, as a C string literal, and the
# Content-Security-Policy that allows these two and no others, by their hashes.
set -eu

folder=$1 html=$2 css=$3 js=$4

# hash file : as a Content-Security-Policy has it.
hash() {
	printf "'sha256-%s'" "$(sha256sum "$1" | cut -d' ' -f1 | tr a-f A-F | basenc --base16 -d | basenc --base64 -w 0)"
}

# The newline after each tag is a part of what is hashed.
{ echo; cat "$css"; } >"$folder/page.css.tmp"
{ echo; cat "$js"; } >"$folder/page.js.tmp"

literal() {
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$/\\n"/'
}

{
	printf '/* Made by daemon/web/embed.sh from page.html, page.css and page.js. */\n#include "daemon/web/page.h"\n\nconst char page_text[] =\n'
	sed -e "/^<style>/r $css" -e "/^<script>/r $js" "$html" | literal
	printf ';\n\nconst size_t page_length = sizeof(page_text) - 1;\n\nconst char page_csp[] =\n'
	printf "\t\"default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; \"\n" \
		"$(hash "$folder/page.css.tmp")" "$(hash "$folder/page.js.tmp")"
	printf "\t\"base-uri 'none'; form-action 'none'; frame-ancestors 'none'\";\n"
} >"$folder/page.c.new"
rm -f "$folder/page.css.tmp" "$folder/page.js.tmp"
mv "$folder/page.c.new" "$folder/page.c"
