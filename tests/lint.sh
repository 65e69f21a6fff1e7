#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh command ... -- page ... : the commands must be installed. The analysers must find nothing in the product, and manuals and scripts must be clean. C
# files with another layout are listed, which is no failure.
set -u
status=0 missing=

while [ "$1" != -- ]; do
	command -v "$1" >/dev/null || missing="$missing $1"
	shift
done
shift
if [ -n "$missing" ]; then
	echo "lint: please install the packages:$missing (or: make deps lint)" >&2
	exit 1
fi

${MAKE:-make} CPPCHECK=warning,performance,portability,style layers cppcheck lint-files || status=1

for page; do
	mandoc -T lint -W warning "$page" || status=1
done

git ls-files -co --exclude-standard | while IFS= read -r file; do
	case $(head -c 20 "$file") in
	'#!/bin/sh'* | '#!/bin/bash'*) printf '%s\n' "$file" ;;
	esac
done | xargs shellcheck -x || status=1

git ls-files -co --exclude-standard -- '*.[ch]' | while IFS= read -r file; do
	clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || printf 'clang-format would lay out anew: %s\n' "$file"
done
[ "$status" -ne 0 ] || echo "lint: clean"
exit $status
