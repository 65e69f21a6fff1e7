# SPDX-License-Identifier: BSD-2-Clause
# The libraries of languages that are compiled, and their adapters for tests/clients. Each target builds into $(O), and is skipped by name where its tools are
# not here. Nothing of the product depends on them.

CLIENTS :=

# Go: all that the go command writes is in $(O).
CLIENTS += client-go
GO      ?= go
GO_ENV  := GOFLAGS=-mod=mod GOPROXY=off GOWORK=off GOTOOLCHAIN=local GOCACHE=$(abspath $(O))/client-go/cache GOPATH=$(abspath $(O))/client-go/path
client-go: | $(FIRST) ## the Go client, and its adapter for tests/clients
	@case $$($(GO) version 2>/dev/null | sed 's/.*go\([0-9]*\.[0-9]*\).*/\1/') in \
	"" | 1.[0-9] | 1.1[0-9] | 1.20) echo "skipped: client/go: no go 1.21 or later is here" ;; \
	*) cd tests/clients/adapter_go && $(GO_ENV) $(GO) build -trimpath -buildvcs=false -o $(abspath $(O))/client-go/adapter . ;; \
	esac
# Node.js: the compiler comes from npm, in the versions of client/node/package-lock.json. $(O)/client-node is the package that `npm pack` packs.
CLIENTS += client-node
client-node: ## the client library for Node.js
	@sh client/node/build.sh $(O)/client-node
