#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compiles the package into a folder: build.sh FOLDER. Says "skipped: ..." where Node.js 20 or the registry of npm is not reached. Writes nothing elsewhere.
set -eu
cd "$(dirname "$0")"
case $1 in /*) out=$1 ;; *) out=$OLDPWD/$1 ;; esac
mkdir -p "$out"

skip() {
	echo "skipped: client/node: $1"
	exit 0
}

major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || skip "there is no node"
[ "$major" -ge 20 ] || skip "node is version $major, and 20 is needed"
command -v npm >/dev/null || skip "there is no npm"
if ! cmp -s package-lock.json "$out/package-lock.json" || [ ! -x "$out/node_modules/.bin/tsc" ]; then
	cp package.json "$out/"
	cp package-lock.json "$out/package-lock.json"
	(cd "$out" && npm ci --silent --no-audit --no-fund --ignore-scripts --cache "$out/.npm" --fetch-retries=0 --fetch-timeout=20000) || {
		rm -f "$out/package-lock.json"
		skip "typescript does not come from npm"
	}
	rm -rf "$out/.npm"
fi
stamp=$(cat src/* package.json tsconfig.json README.md ../../LICENSE | cksum)
[ "$stamp" = "$(cat "$out/.stamp" 2>/dev/null)" ] && exit 0
rm -rf "$out/dist"
cp package.json README.md ../../LICENSE "$out/"
"$out/node_modules/.bin/tsc" -p . --outDir "$out/dist" --typeRoots "$out/node_modules/@types"
echo "$stamp" >"$out/.stamp"
