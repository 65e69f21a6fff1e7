# SPDX-License-Identifier: BSD-2-Clause
# The libraries of languages that are compiled, and their adapters for tests/clients. Each target builds into $(O), and is skipped by name where its tools are
# not here. Nothing of the product depends on them.

CLIENTS :=

# C: the library is built with the rest. The headers for loops of others are compiled where these are here.
CLIENTS += client-c
LOOPS   := poll libevent libuv glib
LOOP_libevent := libevent_core
LOOP_libuv    := libuv
LOOP_glib     := glib-2.0
client-c: $(O)/client-c/adapter $(O)/client-c/libredlock.so.0 $(addprefix $(O)/client-c/loop-,$(LOOPS)) ## the adapter of libredlock, and programs that call it
$(O)/client-c/loop-%: tests/clients/loops/scenario.c tests/clients/loops/with_%.c tests/clients/loops/scenario.h client/loop/%.h $(O)/libredlock.a
	@mkdir -p $(@D)
	@if [ "$(LOOP_$*)" ] && ! pkg-config --exists $(LOOP_$*) 2> /dev/null; then \
		echo "skipped: client/loop/$*.h: $(LOOP_$*) is not here"; \
	else \
		echo "  LD $@"; \
		$(LINK) $(filter-out -MMD -MP,$(BASEFLAGS)) $(CPPFLAGS) -Iclient/lib -o $@ $(filter %.c %.a,$^) $(LIBS_TLS) \
			$$([ ! "$(LOOP_$*)" ] || pkg-config --cflags --libs $(LOOP_$*)); \
	fi
$(O)/client-c/libredlock.so.0: $(SHARED)
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(O)/client-c/adapter: $(patsubst %.c,$(O)/%.o,$(wildcard tests/clients/adapter_c/*.c)) $(O)/libredlock.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_TLS)

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
# The Java client without Maven: javac 17 or later compiles it and its adapter.
JAVA_SOURCES := $(sort $(shell find client/java/src/main/java -name '*.java'))
JAVA_ADAPTER := $(sort $(wildcard tests/clients/adapter_java/*.java))
JAVAC ?= javac
CLIENTS += client-java

.PHONY: client-java
client-java: ## the Java client, and its adapter for tests/clients
	@if [ "$$($(JAVAC) -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')" -ge 17 ] 2> /dev/null; then \
		$(MAKE) --no-print-directory $(O)/client-java/adapter.jar; \
	else \
		echo "skipped: client/java: no javac 17 or later is here"; \
	fi

$(O)/client-java/redlockd.jar: $(JAVA_SOURCES) client/clients.mk
	@echo "  JAVAC $@"
	@rm -rf $(@D)/classes
	@mkdir -p $(@D)/classes
	@$(JAVAC) -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 --release 17 -Xlint:all -Werror -d $(@D)/classes $(JAVA_SOURCES)
	@jar --create --file $@ -C $(@D)/classes .

$(O)/client-java/adapter.jar: $(JAVA_ADAPTER) $(O)/client-java/redlockd.jar
	@echo "  JAVAC $@"
	@rm -rf $(@D)/adapter
	@mkdir -p $(@D)/adapter
	@$(JAVAC) -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 --release 17 -Xlint:all -Werror -cp $(@D)/redlockd.jar -d $(@D)/adapter $(JAVA_ADAPTER)
	@echo "Class-Path: redlockd.jar" > $(@D)/manifest
	@jar --create --file $@ --manifest $(@D)/manifest --main-class Adapter -C $(@D)/adapter .
