# SPDX-License-Identifier: BSD-2-Clause
# redlockd. `make help` lists the targets. CFLAGS, LDFLAGS, CC, O (build folder), PREFIX and DESTDIR are yours to set.

VERSION := 0.2.0

O        ?= build
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
SBINDIR  ?= $(PREFIX)/sbin
MANDIR   ?= $(PREFIX)/share/man
INCDIR   ?= $(PREFIX)/include
LIBDIR   ?= $(PREFIX)/lib
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
# A packaged build (PREFIX=/usr) keeps its configuration in /etc, a local one beside itself.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR  ?= $(if $(filter /usr,$(PREFIX)),/lib/systemd/system,/etc/systemd/system)
INSTALL  ?= install
OBJCOPY  ?= objcopy
CLANG    ?= $(firstword $(foreach c,clang clang-14,$(if $(shell command -v $(c)),$(c))))

# SAN=address,undefined instruments everything; sanitizers and _FORTIFY_SOURCE do not go together. A back trace needs lines only. `check` compiles with -O0, which
# takes a third of the time.
SAN      ?=
ifneq ($(SAN),)
CFLAGS   ?= $(if $(SELECTED),-O0,-O1) -g1
HARDEN   := -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all
HARDEN_LD := -fsanitize=$(SAN)
endif
CFLAGS   ?= -O2 -g
# A distribution may ask for another level of _FORTIFY_SOURCE, and not every processor has each of the others: the compiler is asked once, but not before
# `make deps` has installed it.
FORTIFY  := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
supported = $(shell $(CC) $(1) -S -x c -o /dev/null /dev/null >/dev/null 2>&1 && echo $(1))
ifeq ($(origin HARDEN),undefined)
HARDEN    = $(eval HARDEN := $(FORTIFY) -fstack-protector-strong $(call supported,-fstack-clash-protection) $(call supported,-fcf-protection) -fPIE)$(HARDEN)
endif
HARDEN_LD ?= -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wwrite-strings \
            -Wvla -Wformat=2 -Wimplicit-fallthrough -Wundef -fno-common -Werror
# Some processors have a char without a sign, and what libevent says by -1 in one would be 255: all builds are as the tests know them.
BASEFLAGS := -std=gnu11 -fsigned-char -D_GNU_SOURCE -I. -I$(O)/gen -DREDLOCKD_VERSION='"$(VERSION)"' $(WARN) -MMD -MP
# The parts that decide are held to exact integer conversions as well.
$(O)/proto/%.o $(O)/daemon/core/%.o $(O)/daemon/store/%.o: BASEFLAGS += -Wconversion

# Recursive makes run quietly, and on all processors unless -j says otherwise.
JOBS      = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
SUBMAKE   = $(MAKE) --no-print-directory -s

# V=1 shows the commands.
V        ?=
Q        := $(if $(V),,@)
say       = @$(if $(V),:,$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,echo)) "  $(1) $@"

COMPILE   = $(CC) $(BASEFLAGS) $(HARDEN) $(CPPFLAGS) $(CFLAGS)
LINK      = $(CC) $(HARDEN) $(HARDEN_LD) $(CFLAGS) $(LDFLAGS)

LIBS_TLS   := -lssl -lcrypto
LIBS_LOOP  := -levent_openssl -levent_core -levent_extra -levent_pthreads $(LIBS_TLS)
LIBS_REDIS := -lhiredis -pthread
LIBS_CONF  := -lyaml
LIBS_JOBS  := -lsqlite3
LIBS_CRYPT := -lcrypt
LIBS_TABLE := -lsmartcols
# --- sources, one a line ---------------------------------------------------------------------------------------------

PROTO := \
	proto/defect.c \
	proto/command.c \
	proto/duration.c \
	proto/foreign.c \
	proto/help.c \
	proto/json.c \
	proto/nearest.c \
	proto/quote.c \
	proto/reader.c \
	proto/reply.c \
	proto/request.c \
	proto/text.c \
	proto/token.c

TLS := \
	tls/context.c \
	tls/tls.c

CONF := \
	conf/address.c \
	conf/check.c \
	conf/conf.c \
	conf/file.c \
	conf/nodes.c \
	conf/reader.c \
	conf/report.c \
	conf/rules.c \
	conf/schema.c \
	conf/value.c \
	conf/words.c \
	conf/yaml.c

DAEMON_BASE := \
	daemon/base/arena.c \
	daemon/base/buf.c \
	daemon/base/clock.c \
	daemon/base/fdlist.c \
	daemon/base/heap.c \
	daemon/base/histogram.c \
	daemon/base/log.c \
	daemon/base/map.c \
	daemon/base/mem.c \
	daemon/base/netstring.c \
	daemon/base/offload.c \
	daemon/base/pack.c \
	daemon/base/peer.c \
	daemon/base/pool.c \
	daemon/base/rng.c \
	daemon/base/roll.c \

CORE := \
	daemon/core/event/core.c \
	daemon/core/event/journal.c \
	daemon/core/event/metric.c \
	daemon/core/event/origin.c \
	daemon/core/event/value.c \
	daemon/core/member/admission.c \
	daemon/core/member/clock.c \
	daemon/core/member/members.c \
	daemon/core/member/health.c \
	daemon/core/member/probe.c \
	daemon/core/member/member.c \
	daemon/core/member/observe.c \
	daemon/core/lock/claim.c \
	daemon/core/lock/lease.c \
	daemon/core/lock/lock.c \
	daemon/core/round/round.c \
	daemon/core/round/home.c \
	daemon/core/round/engine_data.c \
	daemon/core/engine/acquire.c \
	daemon/core/engine/move.c \
	daemon/core/engine/adopt.c \
	daemon/core/engine/hold.c \
	daemon/core/engine/renew.c \
	daemon/core/engine/break.c \
	daemon/core/engine/engine.c \
	daemon/core/engine/grant.c \
	daemon/core/engine/release.c \
	daemon/core/engine/retry.c \
	daemon/core/engine/wait.c \
	daemon/core/session/group.c \
	daemon/core/session/session.c \
	daemon/core/session/client.c \
	daemon/core/session/bid.c \
	daemon/core/session/jobs.c \
	daemon/core/session/semaphore.c \
	daemon/core/reply/remote_holders.c \
	daemon/core/reply/show.c \
	daemon/core/reply/history.c \
	daemon/core/reply/listing.c \
	daemon/core/reply/lists.c \
	daemon/core/reply/watch.c \
	daemon/core/reply/send.c \
	daemon/core/reply/records.c \
	daemon/core/rights/access.c \
	daemon/core/rights/auth.c \
	daemon/core/rights/suspects.c \
	daemon/core/deadlock/wait_graph.c \
	daemon/core/deadlock/deadlock.c \
	daemon/core/rate/rate.c \
	daemon/core/job/job.c \
	daemon/core/job/queue.c \
	daemon/core/job/take.c \
	daemon/core/job/job_list.c \
	daemon/core/semaphore/permit_lines.c \
	daemon/core/semaphore/permits.c \
	daemon/core/semaphore/permit_step.c \
	daemon/core/semaphore/permit_restore.c \
	daemon/core/group/groups.c \
	daemon/core/resume/resume.c \
	daemon/core/resume/handover.c \
	daemon/core/resume/restore.c \
	daemon/core/request/job_requests.c \
	daemon/core/request/queries.c \
	daemon/core/request/lockall.c \
	daemon/core/request/locks.c \
	daemon/core/request/semaphores.c \
	daemon/core/admin/admin.c \
	daemon/core/admin/alarm.c \
	daemon/core/service/command.c \
	daemon/core/service/service.c \
	daemon/core/service/after_step.c

STORE := \
	daemon/store/home.c \
	daemon/store/job_keep.c \
	daemon/store/job_restore.c \
	daemon/store/job_rows.c \
	daemon/store/jobs.c \
	daemon/store/keyfile.c \
	daemon/store/keyspace.c \
	daemon/store/ledger.c \
	daemon/store/memory.c \
	daemon/store/memory_key.c \
	daemon/store/memory_whole.c \
	daemon/store/state.c

REDIS := \
	daemon/redis/batch.c \
	daemon/redis/subscriber.c \
	daemon/redis/departure.c \
	daemon/redis/handshake.c \
	daemon/redis/link.c \
	daemon/redis/loop.c \
	daemon/redis/node.c \
	daemon/redis/node_trouble.c \
	daemon/redis/resolver.c \
	daemon/redis/resp.c \
	daemon/redis/script.c \
	daemon/redis/sentinel.c \
	daemon/redis/socket.c \
	daemon/redis/stream.c \
	daemon/redis/redial.c \
	daemon/redis/upstream.c \
	daemon/redis/word.c \
	daemon/redis/failure.c

NET := \
	daemon/net/acceptor.c \
	daemon/net/address.c \
	daemon/net/admission.c \
	daemon/net/carry.c \
	daemon/net/closing.c \
	daemon/net/conn.c \
	daemon/net/conn_state.c \
	daemon/net/handshakes.c \
	daemon/net/held.c \
	daemon/net/hub.c \
	daemon/net/lines.c \
	daemon/net/listener.c \
	daemon/net/net.c \
	daemon/net/output.c \
	daemon/net/pacing.c \
	daemon/net/secure.c \
	daemon/net/shares.c \
	daemon/net/slots.c \
	daemon/net/sockets.c \
	daemon/net/inherited.c \
	daemon/net/tcp_listeners.c \
	daemon/net/turns.c

WEB := \
	daemon/api/api.c \
	daemon/api/calls.c \
	daemon/api/fields.c \
	daemon/api/follower.c \
	daemon/api/problem.c \
	daemon/api/sessions.c \
	daemon/web/answer.c \
	daemon/web/asker.c \
	daemon/web/gate.c \
	daemon/web/snapshot.c \
	daemon/web/stream.c \
	daemon/web/translate.c \
	daemon/web/visits.c \
	daemon/web/web.c

DAEMON := \
	daemon/systemd/systemd.c \
	daemon/systemd/unit.c \
	daemon/files/audit_file.c \
	daemon/files/credentials.c \
	daemon/files/frame.c \
	daemon/files/journal.c \
	daemon/files/runtime.c \
	daemon/restart/carried.c \
	daemon/restart/carry.c \
	daemon/restart/once.c \
	daemon/restart/parcel.c \
	daemon/restart/records.c \
	daemon/restart/restart.c \
	daemon/restart/trial.c \
	daemon/main/backlog.c \
	daemon/main/answer_queue.c \
	daemon/main/daemon.c \
	daemon/main/descriptors.c \
	daemon/main/exposition.c \
	daemon/main/guard.c \
	daemon/main/listen.c \
	daemon/main/main.c \
	daemon/main/outer_figures.c \
	daemon/main/passed.c \
	daemon/main/program.c \
	daemon/main/pump.c \
	daemon/main/removed_files.c \
	daemon/main/rest.c \
	daemon/main/signals.c \
	daemon/main/site.c \
	daemon/main/stores.c \
	daemon/main/supervise.c \
	daemon/main/verifier.c

CLIENT := \
	client/lib/address.c \
	client/lib/boottime.c \
	client/lib/channel.c \
	client/lib/commands.c \
	client/lib/conn.c \
	client/lib/display.c \
	client/lib/exchange.c \
	client/lib/holds.c \
	client/lib/job.c \
	client/lib/line.c \
	client/lib/lock.c \
	client/lib/once.c \
	client/lib/open.c \
	client/lib/pushes.c \
	client/lib/recovery.c \
	client/lib/request.c

# What a program needs OpenSSL for.
CLIENT_TLS := \
	client/lib/tls.c

CLI := \
	client/cli/cli.c \
	client/cli/command/doctor.c \
	client/cli/command/move.c \
	client/cli/command/passwd.c \
	client/cli/command/query.c \
	client/cli/command/request.c \
	client/cli/command/top.c \
	client/cli/command/watch.c \
	client/cli/io/arguments.c \
	client/cli/io/dial.c \
	client/cli/io/options.c \
	client/cli/io/output.c \
	client/cli/main.c \
	client/cli/run/descendants.c \
	client/cli/run/hold.c \
	client/cli/run/keeper.c \
	client/cli/run/lease.c \
	client/cli/run/locks_held.c \
	client/cli/run/once.c \
	client/cli/run/process.c \
	client/cli/run/run.c \
	client/cli/run/wait_display.c \
	client/cli/run/waiting.c

# What prints documents from tables.
TOOLS := \
	daemon/figures.c \
	daemon/states.c \
	conf/docgen.c \
	client/cli/command/completion.c

# --- what is built ---------------------------------------------------------------------------------------------------

obj = $(patsubst %.c,$(O)/%.o,$(1))
GENERATED := $(O)/gen/scripts.o $(O)/gen/page.o

# Of several goals in one make, deps comes before all others.
FIRST := $(filter deps,$(MAKECMDGOALS))

all: $(O)/redlockd $(O)/redlock completions $(O)/libredlock.a ## build the daemon, the command line and the library (the default)

$(O)/redlockd: $(call obj,$(DAEMON) $(WEB) $(NET) $(REDIS) $(STORE) $(CORE) $(DAEMON_BASE) $(CONF) $(TLS) $(PROTO)) $(GENERATED)
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT)

$(O)/redlock: $(call obj,$(CLI) $(CLIENT) $(CLIENT_TLS) $(TLS) $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_TLS) $(LIBS_CRYPT) $(LIBS_TABLE)

# Everything but main.c, for tests to pick from; inner: what fuzzers need of it. Both have the fixture in which fuzzers and the hot path run the service.
INNER := tests/fixture/lone_service.c $(PROTO) $(CONF) $(DAEMON_BASE) $(CORE) $(STORE) $(REDIS)
PARTS := $(INNER) $(TLS) $(NET) $(WEB) $(filter-out %/main.c,$(DAEMON)) $(CLIENT) $(CLIENT_TLS) $(filter-out %/main.c,$(CLI))
$(O)/inner.a: $(call obj,$(INNER)) $(GENERATED)
$(O)/parts.a: $(call obj,$(PARTS)) $(GENERATED)
$(O)/inner.a $(O)/parts.a:
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $^

# For programs that link the client library: of its names only redlock_… are seen outside. What needs OpenSSL is an object of its own.
LIBREDLOCK := $(O)/libredlock.o $(O)/libredlock_tls.o
$(O)/libredlock.o: $(call obj,$(CLIENT) $(PROTO))
$(O)/libredlock_tls.o: $(call obj,$(CLIENT_TLS) $(TLS))
$(LIBREDLOCK):
	$(Q)$(LD) -r -o $@ $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='redlock_*' $@

$(O)/libredlock.a: $(LIBREDLOCK)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $^

# The same as a shared library: its objects are compiled for that, and it exports what client/lib/libredlock.map lists.
SONAME  := libredlock.so.0
SHARED  := $(O)/libredlock.so.$(VERSION)
SHARED_OBJ := $(patsubst %.c,$(O)/shared/%.o,$(CLIENT) $(CLIENT_TLS) $(TLS) $(PROTO))
$(SHARED): $(SHARED_OBJ) client/lib/libredlock.map
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,client/lib/libredlock.map -Wl,-z,defs $(filter-out -pie,$(HARDEN_LD)) $(CFLAGS) $(LDFLAGS) \
		-o $@ $(SHARED_OBJ) $(LIBS_TLS)

$(O)/shared/%.o: %.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) -fPIC -c -o $@ $<

shared: $(SHARED) ## the client library as a shared one

$(O)/%.o: %.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) -c -o $@ $<

# The Lua scripts, embedded as string literals.
SCRIPTS := $(wildcard daemon/redis/lua/*.lua)
$(O)/gen/scripts.c: daemon/redis/embed.sh $(SCRIPTS) | $(FIRST)
	@mkdir -p $(@D)
	$(Q)sh daemon/redis/embed.sh $(O)/gen $(SCRIPTS)

# The page, with its styles and its script, and the policy that allows them.
PAGE := daemon/web/page.html daemon/web/page.css daemon/web/page.js
$(O)/gen/page.c: daemon/web/embed.sh $(PAGE) | $(FIRST)
	@mkdir -p $(@D)
	$(Q)sh daemon/web/embed.sh $(O)/gen $(PAGE)

$(GENERATED): %.o: %.c
	$(call say,CC)
	$(Q)$(COMPILE) -c -o $@ $<

depends = $(patsubst %.c,$(O)/%.d,$(1))
-include $(SHARED_OBJ:.o=.d)
-include $(call depends,$(PARTS) $(CLI) daemon/main/main.c $(TOOLS)) $(O)/gen/scripts.d $(O)/gen/page.d $(O)/gen/docgen.d

# --- to start with ---------------------------------------------------------------------------------------------------

PACKAGES_BUILD := gcc libc6-dev libevent-dev libhiredis-dev libssl-dev libyaml-dev libcrypt-dev libsmartcols-dev libsqlite3-dev netcat-openbsd
PACKAGES_CHECK := pkg-config check libuv1-dev libglib2.0-dev php-cli ruby libsubunit-dev openssl systemd redis-server zsh fish python3 python3-redis python3-venv python3-yaml valgrind clang libclang-rt-14-dev \
                  liblua5.1-0-dev libluajit-5.1-dev mandoc universal-ctags shellcheck procps cppcheck
PACKAGES_COVERAGE := llvm
PACKAGES_DEB   := build-essential debhelper dh-python python3-all
PACKAGES_RPM   := rpm mmdebstrap
PACKAGES_SITE  := mandoc python3-markdown
PACKAGES_CONTAINER := podman crun mmdebstrap
PACKAGES_COMPOSE := $(PACKAGES_CONTAINER) podman-compose netavark aardvark-dns iptables
PACKAGES_ARM64 := $(PACKAGES_CONTAINER) qemu-user-static arch-test
# Each is also the name of a command, by which `make lint` knows what is missing.
PACKAGES_LINT  := gcc clang-tidy clang-format cppcheck mandoc shellcheck

# `make deps run` fetches what it takes to build and run; with any other goal, or none, it is all that the tests need as well. What only
# lint or sim-coverage needs is large: `make deps lint`, `make deps sim-coverage`.
deps: ## install the Debian packages that are needed (as root, or through sudo)
	@sh tests/deps.sh $(PACKAGES_BUILD) $(if $(filter run,$(MAKECMDGOALS)),$(if $(filter-out deps run all,$(MAKECMDGOALS)),$(PACKAGES_CHECK)),$(PACKAGES_CHECK)) \
		$(if $(filter lint,$(MAKECMDGOALS)),$(PACKAGES_LINT)) $(if $(filter site,$(MAKECMDGOALS)),$(PACKAGES_SITE)) $(if $(filter rpm-checked nightly,$(MAKECMDGOALS)),$(PACKAGES_RPM)) $(if $(filter deb debs-checked debs-upgraded first-minutes nightly,$(MAKECMDGOALS)),$(PACKAGES_DEB) lintian) \
		$(if $(filter container-checked nightly,$(MAKECMDGOALS)),$(PACKAGES_CONTAINER)) $(if $(filter container-arm64-checked nightly,$(MAKECMDGOALS)),$(PACKAGES_ARM64)) $(if $(filter compose-checked nightly,$(MAKECMDGOALS)),$(PACKAGES_COMPOSE)) \
		$(if $(filter first-minutes,$(MAKECMDGOALS)),mmdebstrap) $(if $(filter sim-coverage%,$(MAKECMDGOALS)),$(PACKAGES_COVERAGE))

ARGS ?=
run: $(O)/redlockd $(O)/redlock ## start the daemon here, on the memory store (ARGS= are its arguments)
	@sh daemon/next.sh $(O) --set listen.http=127.0.0.1:7421 $(ARGS)
	@exec $(O)/redlockd --set listen.http=127.0.0.1:7421 $(ARGS)

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\)[a-z0-9 -]*:.*## \(.*\)/\1|\2/p' Makefile tests/tests.mk | awk -F'|' '{ printf "  %-18s %s\n", $$1, $$2 }' | sed 's|[$$](O)|$(O)|g'

# --- documents that are printed from tables ---------------------------------------------------------------------------

# The completions of shells: what they must know of redlock comes from cli.def, and what they do with it from client/cli/completion.
COMPLETIONS := $(addprefix $(O)/completion.,bash zsh fish)
# It runs in the build: where CC compiles for other processors, CC_FOR_BUILD is the compiler for this one.
CC_FOR_BUILD ?=
ifneq ($(CC_FOR_BUILD),)
$(O)/completion: Makefile
	+$(Q)$(SUBMAKE) O=$(O)/here CC=$(CC_FOR_BUILD) LD=ld CFLAGS=-O1 CPPFLAGS= LDFLAGS= CC_FOR_BUILD= $(O)/here/completion && cp $(O)/here/completion $@
else
$(O)/completion: $(call obj,client/cli/command/completion.c client/cli/io/options.c $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^
endif

completions: $(COMPLETIONS) ## what bash, zsh and fish complete

$(COMPLETIONS): $(O)/completion.%: client/cli/completion/redlock.% $(O)/completion
	$(Q)$(O)/completion $* >$@ && cat $< >>$@

# Renders the example file and the keys of redlockd.yaml(5) from conf/schema.def; `make rendered` brings both up to date.
$(O)/conf-docgen: $(call obj,conf/docgen.c $(CONF) $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_CONF)

# Renders the tables' part of redlock-protocol(7). A program, no part of the library: its object stands apart from those of proto,
# which do no I/O.
$(O)/gen/docgen.o: proto/docgen.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) -Wconversion -c -o $@ $<

$(O)/docgen: $(O)/gen/docgen.o $(call obj,$(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

# Renders the figures of redlockd(8) from daemon/core/event/metric.def.
$(O)/figures: $(O)/daemon/figures.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

# Renders the states of a name from daemon/core/lock/move.def.
$(O)/states: $(O)/daemon/states.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

rendered: $(O)/conf-docgen $(O)/docgen $(O)/figures $(O)/states ## write what manuals and the example file have of the tables anew
	$(O)/states >daemon/core/STATES.md
	$(O)/figures <daemon/redlockd.8 >$(O)/redlockd.8 && cp $(O)/redlockd.8 daemon/redlockd.8
	$(O)/docgen <proto/redlock-protocol.7 >$(O)/redlock-protocol.7 && cp $(O)/redlock-protocol.7 proto/redlock-protocol.7
	$(O)/conf-docgen example >$(O)/redlockd.yaml && cp $(O)/redlockd.yaml conf/redlockd.yaml
	$(O)/conf-docgen manual <conf/redlockd.yaml.5 >$(O)/redlockd.yaml.5 && cp $(O)/redlockd.yaml.5 conf/redlockd.yaml.5

include tests/tests.mk

# --- looking after the house -----------------------------------------------------------------------------------------

stats: | $(FIRST) ## how long functions and files are
	@sh tests/stats.sh

# What analyses one file at a time leaves build/lint/file.gcc (an object) and file.tidy (its report) behind: a file that has not changed is not
# looked at again. -j is as many as there are processors.
PRODUCT := $(sort $(PROTO) $(TLS) $(CONF) $(DAEMON) $(WEB) $(NET) $(REDIS) $(STORE) $(CORE) $(DAEMON_BASE) $(CLIENT) $(CLIENT_TLS) $(CLI) client/cli/command/completion.c proto/docgen.c conf/docgen.c daemon/figures.c daemon/states.c)
LINT_FLAGS = $(filter-out -MMD -MP -W%,$(BASEFLAGS))
LINTED := $(foreach f,$(PRODUCT:%.c=$(O)/lint/%),$(f).gcc $(f).tidy)

$(O)/lint/%.gcc: %.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,ANALYZE)
	$(Q)gcc $(BASEFLAGS) -MT $@ -MT $(@:.gcc=.tidy) -MF $(@:.gcc=.d) -O2 -fanalyzer -c -o $@ $<

$(O)/lint/%.tidy: %.c .clang-tidy Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,TIDY)
	$(Q)clang-tidy -quiet $< -- $(LINT_FLAGS) >$@ 2>&1 || { cat $@; exit 1; }

-include $(wildcard $(PRODUCT:%.c=$(O)/lint/%.d))

lint-files: $(LINTED)

lint: | $(FIRST) ## static analysis of the product, manuals, scripts; layout (advisory)
	+@MAKE="$(SUBMAKE) -k $(JOBS)" sh tests/lint.sh $(PACKAGES_LINT) -- $(MAN)

clean: ## remove what was built
	rm -rf $(O)

# --- installing ------------------------------------------------------------------------------------------------------

MAN := proto/redlock-protocol.7 conf/redlockd.yaml.5 daemon/redlockd.8 client/cli/redlock.1 client/lib/libredlock.3
CONFDIR := $(SYSCONFDIR)/redlockd
# Where systemd-sysusers looks: below these two prefixes, and in /etc.
SYSUSERSDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib,/etc)/sysusers.d
COMPLETION_bash := $(PREFIX)/share/bash-completion/completions/redlock
COMPLETION_zsh := $(PREFIX)/share/zsh/site-functions/_redlock
COMPLETION_fish := $(PREFIX)/share/fish/vendor_completions.d/redlock.fish
manual = $(MANDIR)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

filled = sed -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@INCDIR@|$(INCDIR)|g' \
	-e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@VERSION@|$(VERSION)|g' $(1) >$(2) && chmod 644 $(2)

install: $(O)/redlockd $(O)/redlock $(O)/libredlock.a $(COMPLETIONS) $(SHARED) ## install below DESTDIR/PREFIX; a configuration that is there stays
	$(INSTALL) -D -m 755 $(O)/redlockd $(DESTDIR)$(SBINDIR)/redlockd
	$(INSTALL) -D -m 755 $(O)/redlock $(DESTDIR)$(BINDIR)/redlock
	$(INSTALL) -D -m 644 client/lib/redlock.h $(DESTDIR)$(INCDIR)/redlock.h
	$(foreach h,$(wildcard client/loop/*.h),$(INSTALL) -D -m 644 $(h) $(DESTDIR)$(INCDIR)/redlock/$(notdir $(h)) &&) :
	$(INSTALL) -D -m 644 $(O)/libredlock.a $(DESTDIR)$(LIBDIR)/libredlock.a
	$(INSTALL) -m 644 $(SHARED) $(DESTDIR)$(LIBDIR)/libredlock.so.$(VERSION)
	ln -sf libredlock.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libredlock.so
	$(foreach m,$(MAN),$(INSTALL) -D -m 644 $(m) $(DESTDIR)$(call manual,$(m)) &&) :
	$(foreach s,bash zsh fish,$(INSTALL) -D -m 644 $(O)/completion.$(s) $(DESTDIR)$(COMPLETION_$(s)) &&) :
	$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(CONFDIR) $(DESTDIR)$(PKGCONFIGDIR)
	$(call filled,redlockd.service,$(DESTDIR)$(UNITDIR)/redlockd.service)
	$(INSTALL) -m 644 redlockd.socket $(DESTDIR)$(UNITDIR)/redlockd.socket
	$(call filled,client/lib/redlock.pc.in,$(DESTDIR)$(PKGCONFIGDIR)/redlock.pc)
	$(INSTALL) -D -m 644 redlockd.sysusers $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf
	test -e $(DESTDIR)$(CONFDIR)/redlockd.yaml || $(INSTALL) -m 644 conf/redlockd.yaml $(DESTDIR)$(CONFDIR)/redlockd.yaml

uninstall: ## remove what install put there; the configuration stays
	rm -f $(DESTDIR)$(SBINDIR)/redlockd $(DESTDIR)$(BINDIR)/redlock $(DESTDIR)$(INCDIR)/redlock.h $(DESTDIR)$(LIBDIR)/libredlock.a
	rm -f $(patsubst client/loop/%,$(DESTDIR)$(INCDIR)/redlock/%,$(wildcard client/loop/*.h))
	rmdir $(DESTDIR)$(INCDIR)/redlock 2>/dev/null || :
	rm -f $(addprefix $(DESTDIR),$(COMPLETION_bash) $(COMPLETION_zsh) $(COMPLETION_fish))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libredlock.so $(SONAME) libredlock.so.$(VERSION)) $(DESTDIR)$(PKGCONFIGDIR)/redlock.pc
	rm -f $(DESTDIR)$(UNITDIR)/redlockd.socket
	rm -f $(foreach m,$(MAN),$(DESTDIR)$(call manual,$(m))) $(DESTDIR)$(UNITDIR)/redlockd.service $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf

DEB_HOST_ARCH ?=
# Built in a copy of what belongs to the source, so nothing of this folder but that gets into them.
deb: ## the Debian packages redlockd, redlock, libredlock0, libredlock-dev and python3-redlockd, in $(O)/deb; for other processors by DEB_HOST_ARCH=arm64
	@DEB_HOST_ARCH=$(DEB_HOST_ARCH) sh debian/build.sh $(O)/deb
debs-checked: ## build the packages twice, compare them, ask lintian, install, use, upgrade and purge them beside the system (as root); needs debhelper and lintian
	@sh tests/debs.sh $(O)/debs

debs-upgraded: deb ## the packages again, in later versions, over the installed ones, under a systemd of its own, while clients hold locks (as root)
	@sh tests/systemd/upgrade.sh $(O)/deb

site: ## the pages of docs/ and the manuals as HTML, in build/site; needs mandoc and python3-markdown
	@/usr/bin/python3 -B docs/build.py $(O)/site

pictures: all ## take the pictures of docs/operations.md anew, from a real run: contrib/top.svg, and contrib/page.png where Chromium is installed
	@REDLOCKD_BUILD=$(O) /usr/bin/python3 -B tests/pictures.py contrib

container-checked: ## build the image of Containerfile, run it, and lock through it (as root); needs podman, crun and mmdebstrap
	@sh tests/container.sh $(O)/container
container-arm64-checked: ## the same for arm64, cross-built and run under qemu; needs qemu-user-static and arch-test as well
	@sh tests/container.sh $(O)/container arm64

.PHONY: all site completions shared deps run help rendered stats lint lint-files clean install uninstall deb debs-checked debs-upgraded pictures container-checked container-arm64-checked
.DELETE_ON_ERROR:
