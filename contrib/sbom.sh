#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sbom.sh : prints the Debian packages that are installed here as a bill of materials, in the JSON of CycloneDX 1.5. The image of Containerfile keeps its own as
# /sbom.cdx.json.
set -eu

# shellcheck disable=SC2016 # dpkg-query fills these in
dpkg-query -W -f '${db:Status-Status} ${Package} ${Version} ${Architecture}\n' | awk '
	function escaped(s) { gsub(/%/, "%25", s); gsub(/\+/, "%2B", s); gsub(/:/, "%3A", s); gsub(/~/, "%7E", s); return s }
	BEGIN { printf "{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"version\":1,\"components\":[" }
	$1 == "installed" {
		printf "%s\n{\"type\":\"library\",\"name\":\"%s\",\"version\":\"%s\",\"purl\":\"pkg:deb/debian/%s@%s?arch=%s\"}", n++ ? "," : "", $2, $3, escaped($2), escaped($3), $4
	}
	END { print "]}" }'
