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
# A packaged build (PREFIX=/usr) keeps its configuration in /etc, a local one beside itself.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR  ?= $(if $(filter /usr,$(PREFIX)),/lib/systemd/system,/etc/systemd/system)
INSTALL  ?= install
OBJCOPY  ?= objcopy
CLANG    ?= $(firstword $(foreach c,clang clang-14,$(if $(shell command -v $(c)),$(c))))

CFLAGS   ?= -O2 -g
HARDEN   ?= -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE
HARDEN_LD ?= -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed

# SAN=address,undefined instruments everything; sanitizers and _FORTIFY_SOURCE do not go together.
SAN      ?=
ifneq ($(SAN),)
HARDEN   := -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all
HARDEN_LD := -fsanitize=$(SAN)
endif

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wwrite-strings \
            -Wvla -Wformat=2 -Wimplicit-fallthrough -Wundef -fno-common -Werror
BASEFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -I$(O)/gen -DREDLOCKD_VERSION='"$(VERSION)"' $(WARN) -MMD -MP
# The parts that decide are held to exact integer conversions as well.
$(O)/proto/%.o $(O)/daemon/core/%.o $(O)/daemon/store/%.o: BASEFLAGS += -Wconversion
# Every unit test is compiled with the list of suites in sight, so that each test file can define its own.
$(O)/tests/unit/%.o: BASEFLAGS += -include tests/unit/suites.h

# V=1 shows the commands.
V        ?=
Q        := $(if $(V),,@)
say       = @$(if $(V),:,$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,echo)) "  $(1) $@"

COMPILE   = $(CC) $(BASEFLAGS) $(HARDEN) $(CPPFLAGS) $(CFLAGS)
LINK      = $(CC) $(HARDEN) $(HARDEN_LD) $(CFLAGS) $(LDFLAGS)

LIBS_LOOP  := -levent_core -levent_pthreads
LIBS_REDIS := -lhiredis -pthread
LIBS_CONF  := -lyaml
LIBS_CHECK := -lcheck -lsubunit -lm -lrt -pthread
# The simulator runs the scripts in the Lua that Redis embeds; only the tests need it. As an archive, where there is one: it calls itself without
# detours, and the linker can put tests/sim/number.c in its way.
LIBS_LUA   := $(filter /%,$(shell $(CC) -print-file-name=liblua5.1.a))
LIBS_SIM   := -Wl,--wrap=strtod $(or $(LIBS_LUA),$(shell pkg-config --libs lua5.1 2>/dev/null),-llua5.1) -lm
$(O)/tests/sim/%.o: BASEFLAGS += $(or $(shell pkg-config --cflags lua5.1 2>/dev/null),-I/usr/include/lua5.1)

# --- sources, one a line ---------------------------------------------------------------------------------------------

PROTO := \
	proto/command.c \
	proto/duration.c \
	proto/nearest.c \
	proto/quote.c \
	proto/reader.c \
	proto/reply.c \
	proto/request.c \
	proto/text.c \
	proto/token.c

CONF := \
	conf/address.c \
	conf/check.c \
	conf/conf.c \
	conf/live.c \
	conf/load.c \
	conf/number.c \
	conf/print.c \
	conf/reader.c \
	conf/report.c \
	conf/schema.c \
	conf/secret.c \
	conf/show.c \
	conf/source.c \
	conf/value.c \
	conf/words.c \
	conf/yaml.c

DAEMON_BASE := \
	daemon/base/arena.c \
	daemon/base/backoff.c \
	daemon/base/buf.c \
	daemon/base/clock.c \
	daemon/base/file.c \
	daemon/base/heap.c \
	daemon/base/log.c \
	daemon/base/map.c \
	daemon/base/mem.c \
	daemon/base/pack.c \
	daemon/base/pool.c \
	daemon/base/rng.c

CORE := \
	daemon/core/acquire.c \
	daemon/core/admission.c \
	daemon/core/admit.c \
	daemon/core/adopt.c \
	daemon/core/command.c \
	daemon/core/core.c \
	daemon/core/deadlock.c \
	daemon/core/debt.c \
	daemon/core/defeat.c \
	daemon/core/deliver.c \
	daemon/core/engine.c \
	daemon/core/event.c \
	daemon/core/flow.c \
	daemon/core/handover.c \
	daemon/core/hold.c \
	daemon/core/journal.c \
	daemon/core/judge.c \
	daemon/core/jump.c \
	daemon/core/line.c \
	daemon/core/list.c \
	daemon/core/listing.c \
	daemon/core/lock.c \
	daemon/core/locks.c \
	daemon/core/look.c \
	daemon/core/member.c \
	daemon/core/members.c \
	daemon/core/metric.c \
	daemon/core/move.c \
	daemon/core/notices.c \
	daemon/core/observe.c \
	daemon/core/op.c \
	daemon/core/page.c \
	daemon/core/parting.c \
	daemon/core/query.c \
	daemon/core/quorum.c \
	daemon/core/remember.c \
	daemon/core/renew.c \
	daemon/core/restore.c \
	daemon/core/resume.c \
	daemon/core/round.c \
	daemon/core/rows.c \
	daemon/core/service.c \
	daemon/core/session.c \
	daemon/core/show.c \
	daemon/core/split.c \
	daemon/core/starve.c \
	daemon/core/state.c \
	daemon/core/turn.c

STORE := \
	daemon/store/keyspace.c \
	daemon/store/memory.c \
	daemon/store/record.c \
	daemon/store/state.c

REDIS := \
	daemon/redis/batch.c \
	daemon/redis/ear.c \
	daemon/redis/flight.c \
	daemon/redis/handshake.c \
	daemon/redis/link.c \
	daemon/redis/node.c \
	daemon/redis/resolver.c \
	daemon/redis/resp.c \
	daemon/redis/script.c \
	daemon/redis/stream.c \
	daemon/redis/upstream.c \
	daemon/redis/verdict.c

NET := \
	daemon/net/acceptor.c \
	daemon/net/address.c \
	daemon/net/closing.c \
	daemon/net/conn.c \
	daemon/net/ending.c \
	daemon/net/hub.c \
	daemon/net/lines.c \
	daemon/net/listener.c \
	daemon/net/net.c \
	daemon/net/output.c \
	daemon/net/slots.c

DAEMON := \
	daemon/backlog.c \
	daemon/daemon.c \
	daemon/journal.c \
	daemon/main.c \
	daemon/pump.c \
	daemon/reach.c \
	daemon/runtime.c \
	daemon/stores.c \
	daemon/supervise.c \
	daemon/systemd.c

CLIENT := \
	client/address.c \
	client/await.c \
	client/channel.c \
	client/conn.c \
	client/draft.c \
	client/exchange.c \
	client/farewell.c \
	client/greeting.c \
	client/holds.c \
	client/line.c \
	client/lock.c \
	client/moment.c \
	client/outcome.c \
	client/pauses.c \
	client/pending.c \
	client/person.c \
	client/pushes.c \
	client/public.c \
	client/recovery.c \
	client/repeat.c \
	client/surplus.c \
	client/tracking.c \
	client/undecided.c

CLI := \
	client/belief.c \
	client/cli.c \
	client/complaint.c \
	client/dial.c \
	client/family.c \
	client/holding.c \
	client/invocation.c \
	client/json.c \
	client/keeper.c \
	client/main.c \
	client/ping.c \
	client/place.c \
	client/query.c \
	client/rows.c \
	client/run.c \
	client/shortage.c \
	client/status.c \
	client/waiting.c

UNIT := \
	tests/unit/main.c \
	tests/unit/acceptor_test.c \
	tests/unit/acquire_test.c \
	tests/unit/answers.c \
	tests/unit/arena_test.c \
	tests/unit/astray_clock_test.c \
	tests/unit/astray_test.c \
	tests/unit/await_test.c \
	tests/unit/backlog_test.c \
	tests/unit/backoff_test.c \
	tests/unit/batch_test.c \
	tests/unit/belief_test.c \
	tests/unit/binding_test.c \
	tests/unit/buf_test.c \
	tests/unit/cli_test.c \
	tests/unit/client_test.c \
	tests/unit/closing_test.c \
	tests/unit/command_test.c \
	tests/unit/conf_reload_test.c \
	tests/unit/conf_test.c \
	tests/unit/conf_text_test.c \
	tests/unit/conn_test.c \
	tests/unit/copies_test.c \
	tests/unit/core_command_test.c \
	tests/unit/crossing_test.c \
	tests/unit/damage_test.c \
	tests/unit/deadlock_test.c \
	tests/unit/debt_test.c \
	tests/unit/differential_test.c \
	tests/unit/duel.c \
	tests/unit/duration_test.c \
	tests/unit/engine_test.c \
	tests/unit/evicted_test.c \
	tests/unit/evidence_test.c \
	tests/unit/set_back_test.c \
	tests/unit/clock_back_test.c \
	tests/unit/extend_test.c \
	tests/unit/fake.c \
	tests/unit/fake_daemon.c \
	tests/unit/fence_test.c \
	tests/unit/flow_test.c \
	tests/unit/full_test.c \
	tests/unit/garbage_test.c \
	tests/unit/generation_test.c \
	tests/unit/half_close_test.c \
	tests/unit/heap_test.c \
	tests/unit/hurry_test.c \
	tests/unit/interpreter_test.c \
	tests/unit/journal_disk_test.c \
	tests/unit/journal_file_test.c \
	tests/unit/journal_test.c \
	tests/unit/judge_clock_test.c \
	tests/unit/judge_test.c \
	tests/unit/jump_test.c \
	tests/unit/keeper_test.c \
	tests/unit/late_jump_test.c \
	tests/unit/left_behind_test.c \
	tests/unit/left_out_test.c \
	tests/unit/life.c \
	tests/unit/lines_test.c \
	tests/unit/lives_client.c \
	tests/unit/lives_daemon.c \
	tests/unit/lives_due.c \
	tests/unit/lives_stores.c \
	tests/unit/lives_test.c \
	tests/unit/link_test.c \
	tests/unit/list_test.c \
	tests/unit/listener_test.c \
	tests/unit/lock_test.c \
	tests/unit/log_test.c \
	tests/unit/look_clock_test.c \
	tests/unit/loss_test.c \
	tests/unit/map_test.c \
	tests/unit/member_test.c \
	tests/unit/memo_test.c \
	tests/unit/memory_test.c \
	tests/unit/model_test.c \
	tests/unit/move_test.c \
	tests/unit/names.c \
	tests/unit/net_test.c \
	tests/unit/net_world.c \
	tests/unit/node_name_test.c \
	tests/unit/op_test.c \
	tests/unit/oracle.c \
	tests/unit/open_test.c \
	tests/unit/outage_test.c \
	tests/unit/outlive_test.c \
	tests/unit/overtaken_test.c \
	tests/unit/pace_debt_test.c \
	tests/unit/pace_lease_test.c \
	tests/unit/pace_test.c \
	tests/unit/past.c \
	tests/unit/patience_test.c \
	tests/unit/pause_test.c \
	tests/unit/person_test.c \
	tests/unit/polled_test.c \
	tests/unit/pool_test.c \
	tests/unit/pushes_test.c \
	tests/unit/query_test.c \
	tests/unit/quorum_test.c \
	tests/unit/race_test.c \
	tests/unit/reach_test.c \
	tests/unit/reader_test.c \
	tests/unit/refusal_test.c \
	tests/unit/reboot_test.c \
	tests/unit/reconnect_test.c \
	tests/unit/recount_test.c \
	tests/unit/record_test.c \
	tests/unit/renew_test.c \
	tests/unit/reply_test.c \
	tests/unit/request_test.c \
	tests/unit/resolver_test.c \
	tests/unit/resume_test.c \
	tests/unit/resume_again_test.c \
	tests/unit/resume_line_test.c \
	tests/unit/adopt_test.c \
	tests/unit/adopt_lease_test.c \
	tests/unit/adopt_resume_test.c \
	tests/unit/heritage_test.c \
	tests/unit/given_up_test.c \
	tests/unit/restore_test.c \
	tests/unit/resp_test.c \
	tests/unit/rig.c \
	tests/unit/rng_test.c \
	tests/unit/round_test.c \
	tests/unit/run_test.c \
	tests/unit/scene.c \
	tests/unit/seed.c \
	tests/unit/send_test.c \
	tests/unit/script_test.c \
	tests/unit/server.c \
	tests/unit/show_test.c \
	tests/unit/sim_line_test.c \
	tests/unit/sim_node_test.c \
	tests/unit/service_test.c \
	tests/unit/session_test.c \
	tests/unit/settle_test.c \
	tests/unit/stall_test.c \
	tests/unit/split_test.c \
	tests/unit/spoilt_test.c \
	tests/unit/stage.c \
	tests/unit/stage_audience.c \
	tests/unit/stage_journal.c \
	tests/unit/stage_promises.c \
	tests/unit/stage_stores.c \
	tests/unit/state_test.c \
	tests/unit/stop_test.c \
	tests/unit/stream_test.c \
	tests/unit/systemd_test.c \
	tests/unit/token_test.c \
	tests/unit/told_late_test.c \
	tests/unit/tracking_test.c \
	tests/unit/trial.c \
	tests/unit/trust_test.c \
	tests/unit/turn_test.c \
	tests/unit/turns_test.c \
	tests/unit/upstream_test.c \
	tests/unit/verdict_test.c \
	tests/unit/wire.c

# Servers that run the shipped scripts, for the simulator and for unit tests.
SIM := \
	tests/sim/binding.c \
	tests/sim/data.c \
	tests/sim/image.c \
	tests/sim/interpreter.c \
	tests/sim/memo.c \
	tests/sim/items.c \
	tests/sim/model.c \
	tests/sim/model_hash.c \
	tests/sim/model_key.c \
	tests/sim/model_server.c \
	tests/sim/model_string.c \
	tests/sim/model_zset.c \
	tests/sim/node.c \
	tests/sim/node_life.c \
	tests/sim/number.c \
	tests/sim/redis.c \
	tests/sim/sandbox.c \
	tests/sim/sha1.c \
	tests/sim/value.c \
	tests/sim/wire.c

# The simulated world, and the program that runs it.
WORLD := \
	tests/sim/main.c \
	tests/sim/account.c \
	tests/sim/asking.c \
	tests/sim/campaign.c \
	tests/sim/chatter.c \
	tests/sim/checker.c \
	tests/sim/client.c \
	tests/sim/conn.c \
	tests/sim/daemon.c \
	tests/sim/deletion_scene.c \
	tests/sim/due.c \
	tests/sim/ear.c \
	tests/sim/eviction.c \
	tests/sim/fault.c \
	tests/sim/figures.c \
	tests/sim/finale.c \
	tests/sim/flap.c \
	tests/sim/flushed_scene.c \
	tests/sim/flight.c \
	tests/sim/hold.c \
	tests/sim/host.c \
	tests/sim/job.c \
	tests/sim/journal.c \
	tests/sim/keys.c \
	tests/sim/kin.c \
	tests/sim/ledger.c \
	tests/sim/left.c \
	tests/sim/line.c \
	tests/sim/link.c \
	tests/sim/memory_scene.c \
	tests/sim/orphans.c \
	tests/sim/overtake_scene.c \
	tests/sim/crossing_scene.c \
	tests/sim/plan.c \
	tests/sim/progress.c \
	tests/sim/rare.c \
	tests/sim/replace.c \
	tests/sim/reply.c \
	tests/sim/report.c \
	tests/sim/request.c \
	tests/sim/resource.c \
	tests/sim/resume.c \
	tests/sim/scene.c \
	tests/sim/scripts.c \
	tests/sim/session_scene.c \
	tests/sim/adopt_scene.c \
	tests/sim/selftest.c \
	tests/sim/server.c \
	tests/sim/shrink.c \
	tests/sim/step.c \
	tests/sim/store_scene.c \
	tests/sim/storm.c \
	tests/sim/stream.c \
	tests/sim/swarm.c \
	tests/sim/sweep.c \
	tests/sim/tight.c \
	tests/sim/told.c \
	tests/sim/trial.c \
	tests/sim/turns.c \
	tests/sim/witness.c \
	tests/sim/wrap.c \
	tests/sim/world.c

# libFuzzer targets: tests/fuzz/fuzz_noun.c, seeds in tests/fuzz/corpus/fuzz_noun/.
FUZZ := \
	tests/fuzz/fuzz_request.c \
	tests/fuzz/fuzz_reply.c \
	tests/fuzz/fuzz_conf.c \
	tests/fuzz/fuzz_resp.c \
	tests/fuzz/fuzz_stream.c \
	tests/fuzz/fuzz_service.c \
	tests/fuzz/fuzz_session.c

# The account of fuzz_session.
ACCOUNT := \
	tests/fuzz/account.c \
	tests/fuzz/account_away.c \
	tests/fuzz/account_rows.c \
	tests/fuzz/account_told.c

# What `make same` compares two builds by.
SAME := \
	tests/same/effects.c \
	tests/same/inputs.c \
	tests/same/worlds.c

# The load generators of tests/load.
LOAD := \
	tests/load/flood.c \
	tests/load/gen.c \
	tests/load/hold.c \
	tests/load/main.c \
	tests/load/mix.c

# Further programs of the tests.
PROGRAMS := \
	conf/docgen.c \
	daemon/figures.c \
	daemon/states.c \
	tests/conf/tool.c \
	tests/words.c \
	tests/bench/contend.c \
	tests/bench/hotpath.c \
	tests/bench/memory_bench.c \
	tests/bench/upstream_bench.c

# --- what is built ---------------------------------------------------------------------------------------------------

obj = $(patsubst %.c,$(O)/%.o,$(1))

# Of several goals in one make, deps comes before all others.
FIRST := $(filter deps,$(MAKECMDGOALS))

all: $(O)/redlockd $(O)/redlock ## build the daemon and the command line (the default)

$(O)/redlockd: $(call obj,$(DAEMON) $(NET) $(REDIS) $(STORE) $(CORE) $(DAEMON_BASE) $(CONF) $(PROTO)) $(O)/gen/scripts.o
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF)

$(O)/redlock: $(call obj,$(CLI) $(CLIENT) $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

# Everything but main.c, for tests and fuzzers to pick from, and the world in which they run the service.
PARTS := tests/world.c $(PROTO) $(CONF) $(DAEMON_BASE) $(CORE) $(STORE) $(REDIS) $(NET) $(filter-out %/main.c,$(DAEMON)) $(CLIENT) $(filter-out %/main.c,$(CLI))
$(O)/parts.a: $(call obj,$(PARTS)) $(O)/gen/scripts.o
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $^

$(O)/unit: $(call obj,$(UNIT) $(filter-out %/main.c,$(SIM))) $(O)/parts.a | $(O)/clock_shim.so
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_CHECK) $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF) $(LIBS_SIM)

# Nothing in a simulated world may read a clock, draw by chance or open a socket: each of these aborts.
SIM_WRAP := clock_gettime gettimeofday time getrandom socket poll
comma := ,
$(O)/sim: $(call obj,$(WORLD) $(SIM)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP)) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_SIM)

# The same for sweeps, which take hours: optimised as a whole, without hardening, and with LuaJIT's interpreter where that is installed (its compiler
# stays off, see tests/sim/sandbox.c). It decides nothing by itself: a world is a function of its plan, so $(O)/sim replays what it finds, and before each
# sweep both run some worlds and must come to the same hash (tests/sim/alike.sh). FAST_LUA= leaves LuaJIT out.
FAST      := $(O)/fast
archive    = $(filter /%,$(shell $(CC) -print-file-name=$(1)))
FAST_LUA  := $(call archive,libluajit-5.1.a)
FAST_LTO   = $(if $(shell $(CC) -v 2>&1 | grep '^gcc version'),-flto=auto)
fast: | $(FIRST)
	@echo "== building the simulator for sweeps"
	+@$(SUBMAKE) $(JOBS) O=$(FAST) SAN= CFLAGS='-O2 -g -fno-plt -Wno-error $(FAST_LTO)' LDFLAGS= HARDEN=-fno-pie HARDEN_LD=-no-pie \
		$(if $(FAST_LTO),AR=gcc-ar) LIBS_REDIS='$(or $(call archive,libhiredis.a),-lhiredis) -pthread' LIBS_LUA='$(or $(FAST_LUA),$(LIBS_LUA))' $(FAST)/sim

# The same, and each of its processes leaves behind which lines it ran.
$(O)/sim-covered: $(call obj,tests/sim/coverage.c $(WORLD) $(SIM)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP) _exit lua_newstate luaL_loadbuffer) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_SIM)

# The simulator with one of the mistakes of daemon/core/mutant.def: what has it is compiled anew, the rest is as it is.
MUTANT_FLAGS = $(filter-out -MMD -MP,$(BASEFLAGS)) -O1 -DMUTANT=MUTANT_$(basename $(@F))
.SECONDEXPANSION:
$(O)/mutant/%: $(O)/sim tests/sim/plant.sh $$(wildcard tests/sim/mutant/$$*.sed)
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(CC) $(MUTANT_FLAGS) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP)) -o $@ $$(cat $@.sources) $(call obj,$(WORLD) $(SIM)) $(O)/parts.a $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_SIM)

# The unit tests with one of these: they find what no simulated world can show.
$(O)/mutant/%.unit: $(O)/unit tests/sim/plant.sh $$(wildcard tests/sim/mutant/$$*.sed)
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(LINK) $(MUTANT_FLAGS) -o $@ $$(cat $@.sources) $(call obj,$(UNIT) $(filter-out %/main.c,$(SIM))) $(O)/parts.a $(LIBS_CHECK) $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF) $(LIBS_SIM)

# The daemon with one of these mistakes, for tests/faults: there, too, it must be seen.
$(O)/planted/%: $(O)/redlockd $(O)/parts.a tests/sim/plant.sh $$(wildcard tests/sim/mutant/$$*.sed)
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(LINK) $(MUTANT_FLAGS) -o $@ $$(cat $@.sources) $(call obj,daemon/main.c) $(O)/parts.a $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF)

# The simulator and the fuzzers, each event and effect told.
SAME_WRAP := service_step service_snapshot
$(O)/same-worlds: $(call obj,tests/same/effects.c tests/same/worlds.c $(filter-out %/main.c,$(WORLD)) $(SIM)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP) $(SAME_WRAP)) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_SIM)
$(O)/same-fuzz_session: $(call obj,$(ACCOUNT))
$(O)/same-fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(call obj,tests/same/effects.c tests/same/inputs.c) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SAME_WRAP)) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF)

# Preloaded into a redis-server or a daemon, so that a test sets its clock, or refuses it memory.
$(O)/%_shim.so: tests/%_shim.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(BASEFLAGS) $(CFLAGS) -shared -fPIC -o $@ $<

# For programs that link the client library: of its names only redlock_… are seen outside.
$(O)/libredlock.a: $(call obj,$(CLIENT) $(PROTO))
	$(Q)$(LD) -r -o $(O)/libredlock.o $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='redlock_*' $(O)/libredlock.o
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $(O)/libredlock.o

$(O)/%.o: %.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) -c -o $@ $<

# The Lua scripts, embedded as string literals.
SCRIPTS := $(wildcard daemon/redis/lua/*.lua)
$(O)/gen/scripts.c: daemon/redis/embed.sh $(SCRIPTS) | $(FIRST)
	@mkdir -p $(@D)
	$(Q)sh daemon/redis/embed.sh $(O)/gen $(SCRIPTS)

$(O)/gen/scripts.o: $(O)/gen/scripts.c
	$(call say,CC)
	$(Q)$(COMPILE) -c -o $@ $<

-include $(patsubst %.o,%.d,$(call obj,$(PARTS) $(CLI) $(UNIT) $(SIM) $(WORLD) $(FUZZ) $(ACCOUNT) $(SAME) $(LOAD) daemon/main.c $(PROGRAMS)) $(O)/gen/scripts.o $(O)/gen/docgen.o)

# --- to start with ---------------------------------------------------------------------------------------------------

PACKAGES_BUILD := gcc libc6-dev libevent-dev libhiredis-dev libyaml-dev netcat-openbsd
PACKAGES_CHECK := pkg-config check libsubunit-dev redis-server python3 python3-redis valgrind clang libclang-rt-14-dev \
                  liblua5.1-0-dev libluajit-5.1-dev mandoc universal-ctags shellcheck procps cppcheck
# Each is also the name of a command, by which `make lint` knows what is missing.
PACKAGES_LINT  := gcc clang-tidy clang-format cppcheck mandoc shellcheck

# `make deps run` fetches what it takes to build and run; with any other goal, or none, it is all that the tests need as well. What only
# lint needs is large: `make deps lint`.
deps: ## install the Debian packages that are needed (as root, or through sudo)
	@sh tests/deps.sh $(PACKAGES_BUILD) $(if $(filter run,$(MAKECMDGOALS)),$(if $(filter-out deps run all,$(MAKECMDGOALS)),$(PACKAGES_CHECK)),$(PACKAGES_CHECK)) \
		$(if $(filter lint,$(MAKECMDGOALS)),$(PACKAGES_LINT))

ARGS ?=
run: $(O)/redlockd $(O)/redlock ## start the daemon here, on the memory store (ARGS= are its arguments)
	@echo "Next, in another terminal:  $(O)/redlock run demo -- sleep 60     holds the lock 'demo' while its command runs"
	@echo "in a third one:             $(O)/redlock run demo -- echo mine    waits for it; $(O)/redlock ls shows who holds it"
	@echo "or by hand:                 nc 127.0.0.1 7420                     then type: LOCK demo wait=5s     (HELP lists the rest)"
	@exec $(O)/redlockd $(ARGS)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  %-14s %s\n", $$1, $$2 }'

# --- tests: each of these targets ends with the line "N passed, N failed" --------------------------------------------

# These mostly wait, and measure time. What sanitize-… need is built by compilers meanwhile, or else by themselves.
SUITES_WAIT    := unit func load-short faults-short sanitize-unit sanitize-func
# These compute, beside them and at low priority.
SUITES_COMPUTE := compilers layers cppcheck docs conf installed hotpath simulated fuzz
CHECK_SANITIZERS := address,undefined
JOBS   = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
SUBMAKE = $(MAKE) --no-print-directory -s
PYTHON ?= /usr/bin/python3

# What the first suites need is built first, on all cores; what cannot be built fails in its suite.
check: | $(FIRST) ## every test; the last line is the sum
	@echo "== building"
	-+@$(SUBMAKE) -k $(JOBS) all $(O)/unit $(O)/load $(FAULT_PROGRAMS)
	@echo "== testing, some ten minutes: what a suite says stands in $(O)/check, and here once it has ended"
	+@MAKE="$(MAKE)" $(PYTHON) -B tests/run.py $(O)/check $(SUITES_WAIT) -- $(SUITES_COMPUTE)

# A test that hangs ends after so many times 4 s: that is no measure, and a loaded machine is slow.
UNIT_PATIENCE ?= 8
unit: $(O)/unit ## unit tests; UNIT_ARGS= names the suites to run
	@CK_TIMEOUT_MULTIPLIER=$(UNIT_PATIENCE) $(O)/unit $(UNIT_ARGS)

func: all $(O)/clock_shim.so ## function tests: real daemons, real Redis servers; FUNC_ARGS= names the tests to run
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/func/run.py $(FUNC_ARGS)

# GUARD_OFF and RAISE_ANYWHERE are played by rows that must show a violation.
FAULT_PROGRAMS := $(O)/clock_shim.so $(O)/alloc_shim.so $(O)/planted/GUARD_OFF $(O)/planted/RAISE_ANYWHERE
FAULTS_RUN = REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/faults/run.py $(if $(SEED),--seed $(SEED)) $(FAULTS_ARGS)
ROW  ?=
SEED ?=
FAULTS_ARGS ?=
SANITIZE ?=
ifneq ($(SANITIZE),)
# The same, in a build folder of its own, with the instrumented daemon that `check` builds.
faults faults-planted faults-short: | $(FIRST)
	+@$(SUBMAKE) O=$(O)/sanitize SAN=$(CHECK_SANITIZERS) SANITIZE= $@
else
faults: all $(FAULT_PROGRAMS) ## the fault matrix on real Redis servers: all rows, or ROW=; a fresh SEED= each time; SANITIZE=1: instrumented; some twenty minutes
	@$(FAULTS_RUN) $(ROW)
faults-planted: all $(O)/clock_shim.so ## further planted mistakes, each of which a row must find
	@$(FAULTS_RUN) --short --planted $(ROW)
faults-short: all $(FAULT_PROGRAMS) ## a selection of it, with short schedules
	@$(FAULTS_RUN) --short --jobs 3 $(ROW)
endif

layers: $(call obj,$(PROTO) $(CORE) $(STORE) $(CLIENT) $(CLI)) ## who includes and calls whom, held against the tables
	@CC="$(CC)" sh tests/layers.sh $(O)

CPPCHECK ?= warning,performance,portability
cppcheck: | $(FIRST) ## the quickest part of lint: what cppcheck takes for a mistake
	@sh tests/cppcheck.sh $(CPPCHECK) $(LINT_FLAGS) -- $(PRODUCT)

docs: $(O)/redlockd $(O)/redlock $(O)/words $(O)/docgen $(O)/figures $(O)/states ## the manuals say all that the tables and programs know
	@MAKE="$(SUBMAKE)" sh tests/docs.sh $(O) $(MAN)

conf: $(O)/redlockd $(O)/conf-tool $(O)/conf-docgen ## configurations, good and bad, against what must be said about them
	@sh tests/conf/run.sh $(O)

hotpath: $(O)/hotpath ## instructions and allocations for one LOCK and UNLOCK, held under a ceiling
	@sh tests/bench/hotpath.sh $(O)

CASE ?=
load: all $(O)/load ## load and limits: many sessions, many names, floods beside well-behaved clients; all cases, or CASE=; some minutes
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/load/run.py $(if $(SEED),--seed $(SEED)) $(CASE)
load-short: all $(O)/load ## a selection of it, at small size
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/load/run.py --short $(if $(SEED),--seed $(SEED)) $(CASE)

bench-contend: $(O)/contend ## K daemons ask N stores for one name at once: time and commands until the first grant
	@$(O)/contend

SEEDS ?= 1000
FROM  ?= 1
sim: $(O)/sim ## simulated worlds, SEEDS= of them from FROM= on, each a function of its seed
	@$(O)/sim --seeds $(SEEDS) --from $(FROM) --jobs 2

SIM_CHECK_SEEDS ?= 2000
simulated: $(O)/sim ## the simulator's own tests, what it has found, a short sweep through worlds that belong to the commit
	@sh tests/sim/check.sh $(O) $(SIM_CHECK_SEEDS)

MINUTES ?=
sweep: $(O)/sim fast ## simulated worlds from where the last sweep stopped, on all processors, for MINUTES= (10) or SEEDS=; FROM= begins elsewhere
	@sh tests/sim/alike.sh $(O)/sim $(FAST)/sim
	@$(FAST)/sim --sweep $(O) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(filter-out file,$(origin SEEDS)),--seeds $(SEEDS)) $(if $(filter-out file,$(origin FROM)),--from $(FROM))

COVERAGE_SEEDS ?= 10000
COVERED := $(O)/coverage
sim-coverage: | $(FIRST) ## which lines of the core, the protocol and the scripts COVERAGE_SEEDS= worlds never run, but for those that have a reason
	+@$(SUBMAKE) $(JOBS) O=$(COVERED) CFLAGS='-O1 -g --coverage' LDFLAGS=--coverage HARDEN= HARDEN_LD= $(COVERED)/sim-covered
	@sh tests/sim/coverage.sh $(COVERED) $(COVERAGE_SEEDS) $(FROM)

MUTANTS ?=
mutants: $(O)/sim ## plant the known mistakes, one at a time (or MUTANTS=), and see the simulator find each
	+@MAKE="$(SUBMAKE)" sh tests/sim/mutants.sh $(O) $(MUTANTS)

BASE ?= HEAD^
RENAMED ?=
same: $(addprefix $(O)/same-,worlds fuzz_service fuzz_session) ## does the core do what it did at BASE=, byte for byte? In SEEDS= worlds from FROM=, and the fuzzers' inputs; RENAMED= is a sed script
	+@MAKE="$(SUBMAKE) $(JOBS)" sh tests/same/same.sh $(O) "$(BASE)" $(FROM) $(SEEDS) "$(RENAMED)"

FUZZ_SECONDS ?= 8
FUZZ_SEED ?= 1
fuzz: | $(FIRST) ## libFuzzer, FUZZ_SECONDS= for each target; FUZZ_SEED=0 draws another seed each time
	+@$(SUBMAKE) $(JOBS) build-fuzzers
	@sh tests/fuzz/run.sh $(O)/fuzz $(FUZZ_SECONDS) $(FUZZ_SEED) $(FUZZ)

compilers: ## clean builds with gcc, with clang and with sanitizers
	+@CC="$(CC)" MAKE="$(SUBMAKE)" JOBS="$(JOBS)" sh tests/compilers.sh $(O) "$(CLANG)"

installed: $(O)/redlockd $(O)/redlock $(O)/libredlock.a ## what install puts where, and that it works from there
	+@CC="$(CC)" MAKE="$(SUBMAKE)" sh tests/install.sh

asan: ## unit and function tests under AddressSanitizer
	+@MAKE="$(MAKE) O=$(O)/asan SAN=address" $(PYTHON) -B tests/run.py $(O)/asan/check unit func
ubsan: ## unit and function tests under UndefinedBehaviorSanitizer
	+@MAKE="$(MAKE) O=$(O)/ubsan SAN=undefined" $(PYTHON) -B tests/run.py $(O)/ubsan/check unit func
# Under both at once: what `check` runs.
sanitize: ## the same under both
	+@MAKE="$(MAKE)" $(PYTHON) -B tests/run.py $(O)/sanitize/check sanitize-unit sanitize-func
sanitize-unit sanitize-func: build-sanitized
	+@$(SUBMAKE) O=$(O)/sanitize SAN=$(CHECK_SANITIZERS) $(@:sanitize-%=%)

# Suites that run beside each other may want it: one builds, the other waits.
build-sanitized: | $(FIRST)
	@mkdir -p $(O)/sanitize
	+@flock $(O)/sanitize/lock $(SUBMAKE) $(JOBS) O=$(O)/sanitize SAN=$(CHECK_SANITIZERS) all $(O)/sanitize/unit
build-fuzzers: | $(FIRST)
	+@$(SUBMAKE) O=$(O)/fuzz CC=$(CLANG) SAN=fuzzer-no-link,address,undefined $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(FUZZ))

# The account is no part of what is explored: its comparisons, of which it makes many for each line, say nothing to the fuzzer.
$(call obj,$(ACCOUNT)): CFLAGS += $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=fuzzer-no-link)
$(O)/fuzz_session: $(call obj,$(ACCOUNT))
$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF)

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

rendered: $(O)/conf-docgen $(O)/docgen $(O)/figures $(O)/states
	$(O)/states >daemon/core/STATES.md
	$(O)/figures <daemon/redlockd.8 >$(O)/redlockd.8 && cp $(O)/redlockd.8 daemon/redlockd.8
	$(O)/docgen --write proto/redlock-protocol.7
	$(O)/conf-docgen example >$(O)/redlockd.yaml && cp $(O)/redlockd.yaml conf/redlockd.yaml
	$(O)/conf-docgen manual <conf/redlockd.yaml.5 >$(O)/redlockd.yaml.5 && cp $(O)/redlockd.yaml.5 conf/redlockd.yaml.5

# The configuration without the daemon, for tests/conf.
$(O)/conf-tool: $(call obj,tests/conf/tool.c $(CONF))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_CONF)

# Prints what the tables say, for tests/docs.sh to look for in the manuals.
$(O)/words: $(O)/tests/words.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/hotpath: $(O)/tests/bench/hotpath.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@ $^

$(O)/contend: $(O)/tests/bench/contend.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ -lm

$(O)/load: $(call obj,$(LOAD)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/memory_bench: $(O)/tests/bench/memory_bench.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/upstream_bench: $(O)/tests/bench/upstream_bench.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_CONF)

# --- looking after the house -----------------------------------------------------------------------------------------

stats: | $(FIRST) ## how long functions and files are
	@sh tests/stats.sh

# What analyses one file at a time leaves build/lint/file.gcc (an object) and file.tidy (its report) behind: a file that has not changed is not
# looked at again. -j is as many as there are processors.
PRODUCT := $(sort $(PROTO) $(CONF) $(DAEMON) $(NET) $(REDIS) $(STORE) $(CORE) $(DAEMON_BASE) $(CLIENT) $(CLI) proto/docgen.c conf/docgen.c daemon/figures.c daemon/states.c)
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
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
manual = $(MANDIR)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

install: $(O)/redlockd $(O)/redlock $(O)/libredlock.a ## install below DESTDIR/PREFIX; a configuration that is there stays
	$(INSTALL) -D -m 755 $(O)/redlockd $(DESTDIR)$(SBINDIR)/redlockd
	$(INSTALL) -D -m 755 $(O)/redlock $(DESTDIR)$(BINDIR)/redlock
	$(INSTALL) -D -m 644 client/redlock.h $(DESTDIR)$(INCDIR)/redlock.h
	$(INSTALL) -D -m 644 $(O)/libredlock.a $(DESTDIR)$(LIBDIR)/libredlock.a
	$(foreach m,$(MAN),$(INSTALL) -D -m 644 $(m) $(DESTDIR)$(call manual,$(m)) &&) :
	$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(CONFDIR)
	sed -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' redlockd.service >$(DESTDIR)$(UNITDIR)/redlockd.service
	$(INSTALL) -D -m 644 redlockd.sysusers $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf
	test -e $(DESTDIR)$(CONFDIR)/redlockd.yaml || $(INSTALL) -m 644 conf/redlockd.yaml $(DESTDIR)$(CONFDIR)/redlockd.yaml

uninstall: ## remove what install put there; the configuration stays
	rm -f $(DESTDIR)$(SBINDIR)/redlockd $(DESTDIR)$(BINDIR)/redlock $(DESTDIR)$(INCDIR)/redlock.h $(DESTDIR)$(LIBDIR)/libredlock.a
	rm -f $(foreach m,$(MAN),$(DESTDIR)$(call manual,$(m))) $(DESTDIR)$(UNITDIR)/redlockd.service $(DESTDIR)$(SYSUSERSDIR)/redlockd.conf

.PHONY: all deps run help rendered check sim sim-coverage bench-contend mutants sweep fast load faults faults-planted $(SUITES_WAIT) $(SUITES_COMPUTE) same asan ubsan sanitize build-sanitized build-fuzzers stats lint lint-files clean install uninstall
.DELETE_ON_ERROR:
