#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh page ... : manuals and scripts must be clean; how the C files are laid out is told, and does not fail.
set -u
status=0

for page; do
	mandoc -T lint -W warning "$page" || status=1
done

git ls-files -co --exclude-standard | while IFS= read -r file; do
	case $(head -c 20 "$file") in
	'#!/bin/sh'* | '#!/bin/bash'*) printf '%s\n' "$file" ;;
	esac
done | xargs shellcheck -x || status=1

if command -v clang-format >/dev/null; then
	git ls-files -co --exclude-standard -- '*.[ch]' | while IFS= read -r file; do
		clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || printf 'clang-format would lay out anew: %s\n' "$file"
	done
fi
exit $status
