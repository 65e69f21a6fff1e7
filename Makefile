# SPDX-License-Identifier: BSD-2-Clause
# redlockd. `make help` lists the targets. CFLAGS, LDFLAGS, CC, O (build folder), PREFIX and DESTDIR are yours to set.

VERSION := 0.1.0

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

# SAN=address,undefined instruments everything; sanitizers and _FORTIFY_SOURCE do not go together. A back trace needs lines only, and -O1 is compiled in half the
# time; fuzzers are to be fast.
SAN      ?=
ifneq ($(SAN),)
CFLAGS   ?= $(if $(findstring fuzzer,$(SAN)),-O2,-O1) -g1
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
BASEFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -I$(O)/gen -DREDLOCKD_VERSION='"$(VERSION)"' $(WARN) -MMD -MP
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
	tls/digest.c \
	tls/tls.c

CONF := \
	conf/address.c \
	conf/check.c \
	conf/conf.c \
	conf/file.c \
	conf/list.c \
	conf/live.c \
	conf/load.c \
	conf/modes.c \
	conf/number.c \
	conf/print.c \
	conf/protect.c \
	conf/reader.c \
	conf/report.c \
	conf/rules.c \
	conf/schema.c \
	conf/secret.c \
	conf/sentinel.c \
	conf/show.c \
	conf/source.c \
	conf/users.c \
	conf/value.c \
	conf/words.c \
	conf/yaml.c

DAEMON_BASE := \
	daemon/base/arena.c \
	daemon/base/backoff.c \
	daemon/base/buf.c \
	daemon/base/clock.c \
	daemon/base/fdlist.c \
	daemon/base/file.c \
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
	daemon/base/segment.c

CORE := \
	daemon/core/access.c \
	daemon/core/acquire.c \
	daemon/core/admin.c \
	daemon/core/admission.c \
	daemon/core/admit.c \
	daemon/core/adopt.c \
	daemon/core/adoption.c \
	daemon/core/agent.c \
	daemon/core/ahead.c \
	daemon/core/alarm.c \
	daemon/core/alarms.c \
	daemon/core/announce.c \
	daemon/core/ask.c \
	daemon/core/ask_daemon.c \
	daemon/core/audit.c \
	daemon/core/auth.c \
	daemon/core/suspects.c \
	daemon/core/award.c \
	daemon/core/belief.c \
	daemon/core/bounds.c \
	daemon/core/break.c \
	daemon/core/busy.c \
	daemon/core/calls.c \
	daemon/core/card.c \
	daemon/core/carry.c \
	daemon/core/claim.c \
	daemon/core/command.c \
	daemon/core/core.c \
	daemon/core/contended.c \
	daemon/core/contender.c \
	daemon/core/conclude.c \
	daemon/core/convert.c \
	daemon/core/deadlock.c \
	daemon/core/defer.c \
	daemon/core/deliver.c \
	daemon/core/denial.c \
	daemon/core/drain.c \
	daemon/core/end.c \
	daemon/core/engine.c \
	daemon/core/enter.c \
	daemon/core/event.c \
	daemon/core/fences.c \
	daemon/core/fire.c \
	daemon/core/flow.c \
	daemon/core/gather.c \
	daemon/core/grant.c \
	daemon/core/group.c \
	daemon/core/groups.c \
	daemon/core/hangup.c \
	daemon/core/health.c \
	daemon/core/heard.c \
	daemon/core/hold.c \
	daemon/core/holders.c \
	daemon/core/home.c \
	daemon/core/job.c \
	daemon/core/jobs.c \
	daemon/core/lessee.c \
	daemon/core/issue.c \
	daemon/core/journal.c \
	daemon/core/kept_names.c \
	daemon/core/origin.c \
	daemon/core/judge.c \
	daemon/core/meet.c \
	daemon/core/jump.c \
	daemon/core/likeness.c \
	daemon/core/lease.c \
	daemon/core/list.c \
	daemon/core/listing.c \
	daemon/core/lock.c \
	daemon/core/lockall.c \
	daemon/core/locks.c \
	daemon/core/look.c \
	daemon/core/lower.c \
	daemon/core/member.c \
	daemon/core/members.c \
	daemon/core/metric.c \
	daemon/core/move.c \
	daemon/core/news.c \
	daemon/core/noted.c \
	daemon/core/notices.c \
	daemon/core/observe.c \
	daemon/core/obtain.c \
	daemon/core/order.c \
	daemon/core/owned.c \
	daemon/core/page.c \
	daemon/core/pass.c \
	daemon/core/places.c \
	daemon/core/parts.c \
	daemon/core/pending.c \
	daemon/core/permits.c \
	daemon/core/probe.c \
	daemon/core/query.c \
	daemon/core/sample.c \
	daemon/core/tally.c \
	daemon/core/rate.c \
	daemon/core/rate_turns.c \
	daemon/core/queuerows.c \
	daemon/core/quorum.c \
	daemon/core/readers.c \
	daemon/core/rebase.c \
	daemon/core/recall.c \
	daemon/core/refusal.c \
	daemon/core/release.c \
	daemon/core/releases.c \
	daemon/core/remember.c \
	daemon/core/rendezvous.c \
	daemon/core/remote_holders.c \
	daemon/core/renew.c \
	daemon/core/restore.c \
	daemon/core/renewals.c \
	daemon/core/resume.c \
	daemon/core/revoke.c \
	daemon/core/retry.c \
	daemon/core/round.c \
	daemon/core/rows.c \
	daemon/core/rules.c \
	daemon/core/runner.c \
	daemon/core/seats.c \
	daemon/core/semaphore.c \
	daemon/core/permits_owned.c \
	daemon/core/semaphores.c \
	daemon/core/slow.c \
	daemon/core/former.c \
	daemon/core/service.c \
	daemon/core/session.c \
	daemon/core/settle.c \
	daemon/core/show.c \
	daemon/core/split.c \
	daemon/core/state.c \
	daemon/core/stored.c \
	daemon/core/survey.c \
	daemon/core/take.c \
	daemon/core/take_again.c \
	daemon/core/tell.c \
	daemon/core/terms.c \
	daemon/core/ticket.c \
	daemon/core/together.c \
	daemon/core/tokens.c \
	daemon/core/trust.c \
	daemon/core/user.c \
	daemon/core/value.c \
	daemon/core/view.c \
	daemon/core/wait.c \
	daemon/core/waiters.c \
	daemon/core/circle.c \
	daemon/core/waitgraph.c \
	daemon/core/watch.c \
	daemon/core/who.c

STORE := \
	daemon/store/breaking.c \
	daemon/store/home.c \
	daemon/store/job_keep.c \
	daemon/store/job_rows.c \
	daemon/store/job_show.c \
	daemon/store/jobs.c \
	daemon/store/keyfile.c \
	daemon/store/keyspace.c \
	daemon/store/ledger.c \
	daemon/store/memory.c \
	daemon/store/memory_whole.c \
	daemon/store/rate.c \
	daemon/store/record.c \
	daemon/store/share_list.c \
	daemon/store/sharing.c \
	daemon/store/shown.c \
	daemon/store/state.c \
	daemon/store/table.c

REDIS := \
	daemon/redis/batch.c \
	daemon/redis/carry.c \
	daemon/redis/subscriber.c \
	daemon/redis/departure.c \
	daemon/redis/flight.c \
	daemon/redis/handshake.c \
	daemon/redis/link.c \
	daemon/redis/link_carry.c \
	daemon/redis/links.c \
	daemon/redis/node.c \
	daemon/redis/node_carry.c \
	daemon/redis/post.c \
	daemon/redis/resolver.c \
	daemon/redis/resp.c \
	daemon/redis/script.c \
	daemon/redis/sentinel.c \
	daemon/redis/settings.c \
	daemon/redis/socket.c \
	daemon/redis/stream.c \
	daemon/redis/told.c \
	daemon/redis/upstream.c \
	daemon/redis/word.c \
	daemon/redis/failure.c

NET := \
	daemon/net/acceptor.c \
	daemon/net/address.c \
	daemon/net/admin.c \
	daemon/net/carried.c \
	daemon/net/carry.c \
	daemon/net/closing.c \
	daemon/net/conn.c \
	daemon/net/ending.c \
	daemon/net/halfopen.c \
	daemon/net/held.c \
	daemon/net/hub.c \
	daemon/net/lines.c \
	daemon/net/listener.c \
	daemon/net/net.c \
	daemon/net/output.c \
	daemon/net/secure.c \
	daemon/net/shares.c \
	daemon/net/slots.c \
	daemon/net/stock.c

WEB := \
	daemon/web/answer.c \
	daemon/web/asker.c \
	daemon/web/audience.c \
	daemon/web/carry.c \
	daemon/web/gate.c \
	daemon/web/listed.c \
	daemon/web/notation.c \
	daemon/web/query.c \
	daemon/web/snapshot.c \
	daemon/web/totals.c \
	daemon/web/stream.c \
	daemon/web/visits.c \
	daemon/web/web.c

DAEMON := \
	daemon/audit_file.c \
	daemon/backlog.c \
	daemon/carried.c \
	daemon/carry.c \
	daemon/credentials.c \
	daemon/daemon.c \
	daemon/descriptors.c \
	daemon/exposition.c \
	daemon/outer.c \
	daemon/fdstore.c \
	daemon/frame.c \
	daemon/guard.c \
	daemon/journal.c \
	daemon/kept.c \
	daemon/lasting.c \
	daemon/listen.c \
	daemon/main.c \
	daemon/once.c \
	daemon/parcel.c \
	daemon/passed.c \
	daemon/program.c \
	daemon/pump.c \
	daemon/reach.c \
	daemon/rest.c \
	daemon/restart.c \
	daemon/runtime.c \
	daemon/site.c \
	daemon/status.c \
	daemon/stores.c \
	daemon/supervise.c \
	daemon/systemd.c \
	daemon/timer.c \
	daemon/trial.c \
	daemon/unit.c \
	daemon/vanished.c \
	daemon/wrong_port.c \
	daemon/verifier.c

CLIENT := \
	client/address.c \
	client/admin.c \
	client/ask.c \
	client/await.c \
	client/bundle.c \
	client/counted.c \
	client/channel.c \
	client/conn.c \
	client/draft.c \
	client/exchange.c \
	client/farewell.c \
	client/following.c \
	client/greeting.c \
	client/holds.c \
	client/line.c \
	client/lock.c \
	client/deferred.c \
	client/many.c \
	client/moment.c \
	client/outcome.c \
	client/pauses.c \
	client/pending.c \
	client/person.c \
	client/pushes.c \
	client/room.c \
	client/public.c \
	client/rate.c \
	client/recovery.c \
	client/secret.c \
	client/secure.c \
	client/taken.c \
	client/tracking.c \
	client/watches.c

# What a program needs OpenSSL for.
CLIENT_TLS := \
	client/use_tls.c

CLI := \
	client/arguments.c \
	client/belief.c \
	client/board.c \
	client/cli.c \
	client/complaint.c \
	client/deferring.c \
	client/descriptors.c \
	client/dial.c \
	client/doctor.c \
	client/drain.c \
	client/family.c \
	client/finding.c \
	client/force.c \
	client/hold.c \
	client/holding.c \
	client/init.c \
	client/json.c \
	client/keeper.c \
	client/keeping.c \
	client/lead.c \
	client/letting.c \
	client/limit.c \
	client/linger.c \
	client/loss.c \
	client/main.c \
	client/move.c \
	client/names.c \
	client/nested.c \
	client/options.c \
	client/passwd.c \
	client/ping.c \
	client/place.c \
	client/process.c \
	client/query.c \
	client/rows.c \
	client/run.c \
	client/screen.c \
	client/several.c \
	client/shortage.c \
	client/signals.c \
	client/status.c \
	client/top.c \
	client/waiting.c \
	client/wakeups.c \
	client/ward.c \
	client/work.c \
	client/working.c \
	client/watch.c

# What prints documents from tables.
TOOLS := \
	client/completion.c \
	conf/docgen.c \
	daemon/figures.c \
	daemon/states.c

# --- what is built ---------------------------------------------------------------------------------------------------

obj = $(patsubst %.c,$(O)/%.o,$(1))
GENERATED := $(O)/gen/layout.o $(O)/gen/scripts.o $(O)/gen/page.o

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

# The same as a shared library: its objects are compiled for that, and it exports what client/libredlock.map lists.
SONAME  := libredlock.so.0
SHARED  := $(O)/libredlock.so.$(VERSION)
SHARED_OBJ := $(patsubst %.c,$(O)/shared/%.o,$(CLIENT) $(CLIENT_TLS) $(TLS) $(PROTO))
$(SHARED): $(SHARED_OBJ) client/libredlock.map
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,client/libredlock.map -Wl,-z,defs $(filter-out -pie,$(HARDEN_LD)) $(CFLAGS) $(LDFLAGS) \
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

# What another build of the daemon must have alike to go on from the memory of this one.
STRUCTURES := $(wildcard daemon/base/*.[ch] daemon/core/*.[ch] daemon/core/*.def daemon/store/*.[ch] daemon/net/*.h daemon/redis/*.h proto/*.h proto/*.def) \
              daemon/net/carry.c daemon/net/carried.c daemon/net/stock.c daemon/redis/carry.c \
              daemon/backlog.c daemon/backlog.h daemon/carried.h daemon/frame.h daemon/journal.h tls/digest.h
$(O)/gen/layout.c: daemon/layout.sh $(wildcard $(STRUCTURES)) | $(FIRST)
	@mkdir -p $(@D)
	$(Q)sh daemon/layout.sh $(O)/gen "$$($(CC) -dumpmachine)" $(sort $(wildcard $(STRUCTURES)))

$(GENERATED): %.o: %.c
	$(call say,CC)
	$(Q)$(COMPILE) -c -o $@ $<

depends = $(patsubst %.c,$(O)/%.d,$(1))
-include $(SHARED_OBJ:.o=.d)
-include $(call depends,$(PARTS) $(CLI) daemon/main.c $(TOOLS)) $(O)/gen/layout.d $(O)/gen/scripts.d $(O)/gen/page.d $(O)/gen/docgen.d

# --- to start with ---------------------------------------------------------------------------------------------------

PACKAGES_BUILD := gcc libc6-dev libevent-dev libhiredis-dev libssl-dev libyaml-dev libcrypt-dev libsmartcols-dev libsqlite3-dev netcat-openbsd
PACKAGES_CHECK := pkg-config check libsubunit-dev openssl systemd redis-server zsh fish python3 python3-redis valgrind clang libclang-rt-14-dev \
                  liblua5.1-0-dev libluajit-5.1-dev mandoc universal-ctags shellcheck procps cppcheck
PACKAGES_COVERAGE := llvm
PACKAGES_DEB   := build-essential debhelper
PACKAGES_CONTAINER := podman crun mmdebstrap
# Each is also the name of a command, by which `make lint` knows what is missing.
PACKAGES_LINT  := gcc clang-tidy clang-format cppcheck mandoc shellcheck

# `make deps run` fetches what it takes to build and run; with any other goal, or none, it is all that the tests need as well. What only
# lint or sim-coverage needs is large: `make deps lint`, `make deps sim-coverage`.
deps: ## install the Debian packages that are needed (as root, or through sudo)
	@sh tests/deps.sh $(PACKAGES_BUILD) $(if $(filter run,$(MAKECMDGOALS)),$(if $(filter-out deps run all,$(MAKECMDGOALS)),$(PACKAGES_CHECK)),$(PACKAGES_CHECK)) \
		$(if $(filter lint,$(MAKECMDGOALS)),$(PACKAGES_LINT)) $(if $(filter deb debs-checked debs-upgraded first-minutes,$(MAKECMDGOALS)),$(PACKAGES_DEB) lintian) \
		$(if $(filter container-checked,$(MAKECMDGOALS)),$(PACKAGES_CONTAINER)) $(if $(filter first-minutes,$(MAKECMDGOALS)),mmdebstrap) $(if $(filter sim-coverage%,$(MAKECMDGOALS)),$(PACKAGES_COVERAGE))

ARGS ?=
run: $(O)/redlockd $(O)/redlock ## start the daemon here, on the memory store (ARGS= are its arguments)
	@sh daemon/next.sh $(O) --set listen.http=127.0.0.1:7421 $(ARGS)
	@exec $(O)/redlockd --set listen.http=127.0.0.1:7421 $(ARGS)

help: ## this list
	@sed -n 's/^\([a-z-]*\)[a-z -]*:.*## \(.*\)/\1|\2/p' Makefile tests/tests.mk | awk -F'|' '{ printf "  %-18s %s\n", $$1, $$2 }' | sed 's|[$$](O)|$(O)|g'

# --- documents that are printed from tables ---------------------------------------------------------------------------

# The completions of shells: what they must know of redlock comes from cli.def, and what they do with it from client/completion.
COMPLETIONS := $(addprefix $(O)/completion.,bash zsh fish)
$(O)/completion: $(call obj,client/completion.c client/options.c $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

completions: $(COMPLETIONS) ## what bash, zsh and fish complete

$(COMPLETIONS): $(O)/completion.%: client/completion/redlock.% $(O)/completion
	$(Q)$(O)/completion $* >$@ && cat $< >>$@

# Renders the example file and the keys of redlockd.yaml(5) from conf/schema.def; `make rendered` brings both up to date.
$(O)/conf-docgen: $(call obj,conf/docgen.c $(CONF))
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

# Renders the figures of redlockd(8) from daemon/core/metric.def.
$(O)/figures: $(call obj,daemon/figures.c daemon/core/metric.c)
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

# Renders the states of a name from daemon/core/move.def.
$(O)/states: $(call obj,daemon/states.c daemon/core/state.c)
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

rendered: $(O)/conf-docgen $(O)/docgen $(O)/figures $(O)/states ## write what manuals and the example file have of the tables anew
	$(O)/states >daemon/core/STATES.md
	$(O)/figures <daemon/redlockd.8 >$(O)/redlockd.8 && cp $(O)/redlockd.8 daemon/redlockd.8
	$(O)/docgen --write proto/redlock-protocol.7
	$(O)/conf-docgen example >$(O)/redlockd.yaml && cp $(O)/redlockd.yaml conf/redlockd.yaml
	$(O)/conf-docgen manual <conf/redlockd.yaml.5 >$(O)/redlockd.yaml.5 && cp $(O)/redlockd.yaml.5 conf/redlockd.yaml.5

include tests/tests.mk

# --- looking after the house -----------------------------------------------------------------------------------------

stats: | $(FIRST) ## how long functions and files are
	@sh tests/stats.sh

# What analyses one file at a time leaves build/lint/file.gcc (an object) and file.tidy (its report) behind: a file that has not changed is not
# looked at again. -j is as many as there are processors.
PRODUCT := $(sort $(PROTO) $(TLS) $(CONF) $(DAEMON) $(WEB) $(NET) $(REDIS) $(STORE) $(CORE) $(DAEMON_BASE) $(CLIENT) $(CLIENT_TLS) $(CLI) client/completion.c proto/docgen.c conf/docgen.c daemon/figures.c daemon/states.c)
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

MAN := proto/redlock-protocol.7 conf/redlockd.yaml.5 daemon/redlockd.8 client/redlock.1 client/libredlock.3
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
	$(INSTALL) -D -m 644 client/redlock.h $(DESTDIR)$(INCDIR)/redlock.h
	$(INSTALL) -D -m 644 $(O)/libredlock.a $(DESTDIR)$(LIBDIR)/libredlock.a
	$(INSTALL) -m 644 $(SHARED) $(DESTDIR)$(LIBDIR)/libredlock.so.$(VERSION)
	ln -sf libredlock.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libredlock.so
	$(foreach m,$(MAN),$(INSTALL) -D -m 644 $(m) $(DESTDIR)$(call manual,$(m)) &&) :
	$(foreach s,bash zsh fish,$(INSTALL) -D -m 644 $(O)/completion.$(s) $(DESTDIR)$(COMPLETION_$(s)) &&) :
	$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(CONFDIR) $(DESTDIR)$(PKGCONFIGDIR)
	$(call filled,redlockd.service,$(DESTDIR)$(UNITDIR)/redlockd.service)
	$(INSTALL) -m 644 redlockd.socket $(DESTDIR)$(UNITDIR)/redlockd.socket
	$(call filled,client/redlock.pc.in,$(DESTDIR)$(PKGCONFIGDIR)/redlock.pc)
	$(INSTALL) -D -m 644 redlockd.sysusers $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf
	test -e $(DESTDIR)$(CONFDIR)/redlockd.yaml || $(INSTALL) -m 644 conf/redlockd.yaml $(DESTDIR)$(CONFDIR)/redlockd.yaml

uninstall: ## remove what install put there; the configuration stays
	rm -f $(DESTDIR)$(SBINDIR)/redlockd $(DESTDIR)$(BINDIR)/redlock $(DESTDIR)$(INCDIR)/redlock.h $(DESTDIR)$(LIBDIR)/libredlock.a
	rm -f $(addprefix $(DESTDIR),$(COMPLETION_bash) $(COMPLETION_zsh) $(COMPLETION_fish))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libredlock.so $(SONAME) libredlock.so.$(VERSION)) $(DESTDIR)$(PKGCONFIGDIR)/redlock.pc
	rm -f $(DESTDIR)$(UNITDIR)/redlockd.socket
	rm -f $(foreach m,$(MAN),$(DESTDIR)$(call manual,$(m))) $(DESTDIR)$(UNITDIR)/redlockd.service $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf

# Built in a copy of what belongs to the source, so nothing of this folder but that gets into them.
deb: ## the Debian packages redlockd, redlock, libredlock0 and libredlock-dev, in $(O)/deb
	@sh debian/build.sh $(O)/deb
debs-checked: ## build the packages twice, compare them, ask lintian, install, use, upgrade and purge them beside the system (as root); needs debhelper and lintian
	@sh tests/debs.sh $(O)/debs

debs-upgraded: deb ## the packages again, in later versions, over the installed ones, under a systemd of its own, while clients hold locks (as root)
	@sh tests/systemd/upgrade.sh $(O)/deb

pictures: all ## take the pictures of the README anew, from a real run: contrib/top.svg, and contrib/page.png where Chromium is installed
	@REDLOCKD_BUILD=$(O) /usr/bin/python3 -B tests/pictures.py contrib

container-checked: ## build the image of Containerfile, run it, and lock through it (as root); needs podman, crun and mmdebstrap
	@sh tests/container.sh $(O)/container

.PHONY: all completions shared deps run help rendered stats lint lint-files clean install uninstall deb debs-checked debs-upgraded pictures container-checked
.DELETE_ON_ERROR:
