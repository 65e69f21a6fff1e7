#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# servers.sh folder : fetches the Redis and the Valkey of a later Debian release, and unpacks them into the folder with the loader and the libraries that they
# were built for. Nothing is installed. folder/redis-server and folder/valkey-server start them: REDIS_SERVER= of the tests takes either.
# RELEASE names the release, MIRROR the archive; without it that is the one from which this system has its packages.
set -eu
release=${RELEASE:-trixie}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
apt=$folder/apt root=$folder/root

mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u | grep '/debian/*$' | head -n 1)}
[ -n "$mirror" ] || { echo "servers.sh: set MIRROR to an archive of Debian" >&2; exit 1; }

# get what ... : apt-get with lists, cache and state of its own, as if no package were installed.
get() {
	apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/nonexistent -o Dir::State="$apt/state" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$apt/sources.list"
get update
get install --download-only --no-install-recommends --yes redis-server valkey-server
rm -rf "$root"
for package in "$apt"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$(mkdir -p "$root" && echo "$root")"
done

# Releases since Debian 12 have /lib and /lib64 below /usr; what is not packaged there is the link.
loader=$(find "$root" -name 'ld-linux*.so.[0-9]*' | head -n 1)
libraries=$(find "$root" -name 'libc.so.6' | head -n 1)
for program in redis-server valkey-server; do
	cat >"$folder/$program" <<-END
		#!/bin/sh
		exec "$loader" --library-path "$(dirname "$libraries")" --argv0 $program "$root/usr/bin/$program" "\$@"
	END
	chmod +x "$folder/$program"
	"$folder/$program" --version
done
