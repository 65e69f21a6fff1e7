# SPDX-License-Identifier: BSD-2-Clause
# The tests: their programs, and the targets that run them. The Makefile includes it.

include tests/sources.mk
include client/clients.mk
PYTHON ?= /usr/bin/python3

# --- what they are built with ------------------------------------------------------------------------------------------

# The files of unit tests are listed in suites.def. Each is compiled with suites.h in sight, which has the macros that register tests.
# UNIT_FOLDERS: of the suites those below these folders of tests are built.
UNIT_FOLDERS ?=
UNIT := $(shell sed -nE 's|^SUITE[A-Z_]*\((.+), (.+)\)$$|tests/\1/\2_test.c|p' tests/unit/suites.def)
ifneq ($(UNIT_FOLDERS),)
UNIT := $(foreach folder,$(UNIT_FOLDERS),$(filter tests/$(folder)/%,$(UNIT)))
endif
UNIT += tests/unit/main.c
$(O)/tests/unit/%.o $(O)/tests/sim/unit/%.o $(O)/tests/fixture/%.o: BASEFLAGS += -include tests/unit/suites.h
# Most of the time of `make check` goes into compiling, and these are half of what is compiled. What they test is built as it is installed.
$(O)/tests/unit/%.o: CFLAGS += -O0 -U_FORTIFY_SOURCE

LIBS_CHECK := -lcheck -lsubunit -lm -lrt -pthread
# The simulator runs the scripts in the Lua that Redis embeds; only the tests need it. As an archive, where there is one: it calls itself without
# detours, and the linker can put tests/sim/redis/strtod.c in its way.
LIBS_LUA   := $(filter /%,$(shell $(CC) -print-file-name=liblua5.1.a))
LINK_LUA   := $(or $(LIBS_LUA),$(shell pkg-config --libs lua5.1 2>/dev/null),-llua5.1) -lm
LIBS_SIM   := -Wl,--wrap=strtod $(LINK_LUA)
FLAGS_LUA  := $(or $(shell pkg-config --cflags lua5.1 2>/dev/null),-I/usr/include/lua5.1)
$(O)/tests/sim/%.o: BASEFLAGS += $(FLAGS_LUA)

# --- their programs --------------------------------------------------------------------------------------------------

$(O)/fixture.a: $(call obj,$(FIXTURE))
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $^

always:
$(O)/unit.list: always
	@mkdir -p $(@D)
	@echo '$(UNIT)' | cmp -s - $@ || echo '$(UNIT)' >$@
comma := ,
# The unit tests of libredlock move its clock: tests/fixture/client_clock.c.
UNIT_WRAP := $(addprefix -Wl$(comma)--wrap=,clock_gettime poll)
$(O)/unit: $(call obj,$(UNIT) $(filter-out %/main.c,$(SIM))) $(O)/fixture.a $(O)/parts.a $(O)/unit.list | $(O)/clock_shim.so
	$(call say,LD)
	$(Q)$(LINK) $(UNIT_WRAP) -o $@ $(filter-out %.list,$^) $(LIBS_CHECK) $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT) $(LIBS_TABLE) $(LIBS_SIM)

# Nothing in a simulated world may read a clock, draw by chance or open a socket: each of these aborts.
SIM_WRAP := clock_gettime gettimeofday time getrandom socket poll

# A daemon can be killed at each fence of these files. They come before the rest of the product, but not before a file with a mistake.
KILL_POINTS := -include tests/sim/world/kill_point.h
LINK_KILLABLE := $(addprefix -Wl$(comma)-u$(comma),keyfile_new keyspace_init state_open)
$(O)/killable/%.o: %.c tests/sim/world/kill_point.h Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) $(KILL_POINTS) -c -o $@ $<
-include $(KILLABLE:%.c=$(O)/killable/%.d)
$(O)/killable.a: $(patsubst %.c,$(O)/killable/%.o,$(KILLABLE))
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) qcs $@ $^

$(O)/sim: $(call obj,$(WORLD) $(SIM)) $(O)/killable.a $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP)) $(LINK_KILLABLE) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_SIM)

# The same for sweeps, which take hours: optimised as a whole, without hardening, and with LuaJIT's interpreter where that is installed (its compiler
# stays off, see tests/sim/redis/sandbox.c). It decides nothing by itself: a world is a function of its plan, so $(O)/sim replays what it finds, and before each
# sweep both run some worlds and must come to the same hash (tests/sim/alike.sh). FAST_LUA= leaves LuaJIT out.
FAST      := $(O)/fast
archive    = $(filter /%,$(shell $(CC) -print-file-name=$(1)))
FAST_LUA  := $(call archive,libluajit-5.1.a)
FAST_LTO   = $(if $(shell $(CC) -v 2>&1 | grep '^gcc version'),-flto=auto)
fast: | $(FIRST) ## build the simulator for sweeps
	@echo "== building the simulator for sweeps"
	+@$(SUBMAKE) $(JOBS) O=$(FAST) SAN= CFLAGS='-O2 -g -fno-plt -Wno-error $(FAST_LTO)' LDFLAGS= HARDEN=-fno-pie HARDEN_LD=-no-pie \
		$(if $(FAST_LTO),AR=gcc-ar) LIBS_REDIS='$(or $(call archive,libhiredis.a),-lhiredis) -pthread' LIBS_LUA='$(or $(FAST_LUA),$(LIBS_LUA))' $(FAST)/sim

# The same simulator, but each of its processes writes down which lines and branches it ran. COVER= is the compiler and its flags for what is measured.
COVER     ?=
ifneq ($(COVER),)
$(O)/proto/%.o $(O)/daemon/core/%.o: CC = $(COVER)
$(O)/sim-covered: private CC = $(COVER)
endif
$(O)/sim-covered: $(call obj,tests/sim/sweep/coverage.c $(WORLD) $(SIM)) $(O)/killable.a $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP) _exit lua_newstate luaL_loadbuffer) $(LINK_KILLABLE) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_SIM)

# The simulator with one of the mistakes of tests/sim/mutant: what the patch changes is compiled, without warnings, the rest is as it is.
MUTANT_FLAGS = -I$@.d $(filter-out -MMD -MP -W%,$(BASEFLAGS)) -O1
$(O)/mutant/%: tests/sim/mutant/%.patch $(O)/sim tests/sim/plant.sh tests/sim/plant.awk
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(CC) $(MUTANT_FLAGS) $(KILL_POINTS) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP)) $(LINK_KILLABLE) -o $@ $$(cat $@.sources) $(call obj,$(WORLD) $(SIM)) \
		$(O)/killable.a $(O)/parts.a $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_SIM)

# The unit tests with one of these mistakes: they find what no simulated world can show.
$(O)/mutant/%.unit: tests/sim/mutant/%.patch $(O)/unit tests/sim/plant.sh tests/sim/plant.awk
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(LINK) $(MUTANT_FLAGS) $(UNIT_WRAP) -o $@ $$(cat $@.sources) $(call obj,$(UNIT) $(filter-out %/main.c,$(SIM))) $(O)/fixture.a $(O)/parts.a $(LIBS_CHECK) $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT) $(LIBS_TABLE) $(LIBS_SIM)

# The daemon with one of these mistakes, for tests/faults: a row must see the mistake as well.
$(O)/planted/%: tests/sim/mutant/%.patch $(O)/redlockd $(O)/parts.a tests/sim/plant.sh tests/sim/plant.awk
	$(Q)mkdir -p $(@D) && sh tests/sim/plant.sh $* $@.d >$@.sources
	$(call say,CC)
	$(Q)$(LINK) $(MUTANT_FLAGS) -o $@ $$(cat $@.sources) $(call obj,daemon/main/main.c) $(O)/parts.a $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT)

# The daemon as a build whose structures differ, from patched sources: a restart goes from one to the other and back.
OTHER_STRUCTURES := session claim lease lock pending core job group permit contender
$(O)/other-structures/redlockd: $(O)/redlockd
	@rm -rf $(@D)/source && mkdir -p $(@D)/source
	$(call say,CC)
	$(Q)cp -r Makefile conf daemon proto tls client tests $(@D)/source/
	$(Q)find $(@D)/source/daemon/core -name '*.h' -exec sed -i $(foreach s,$(OTHER_STRUCTURES),-e 's/^struct $(s) {$$/&\n\tint64_t of_another_build[3];/') {} +
	$(Q)$(MAKE) -s -C $(@D)/source O=out CFLAGS='-O0 -U_FORTIFY_SOURCE' out/redlockd && cp $(@D)/source/out/redlockd $@

# The simulator and the fuzzers, which print each event and effect.
SAME_WRAP := service_step service_snapshot
$(O)/same-worlds: $(call obj,tests/same/effects.c tests/same/worlds.c $(filter-out %/main.c,$(WORLD)) $(SIM)) $(O)/killable.a $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SIM_WRAP) $(SAME_WRAP)) $(LINK_KILLABLE) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_SIM)
$(O)/same-fuzz_session: $(call obj,$(STORY))
$(O)/same-fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(call obj,tests/same/effects.c tests/same/inputs.c) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(SAME_WRAP)) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT)

# Libraries that are preloaded into a redis-server or a daemon, so that a test sets its clock, or refuses it memory.
$(O)/%_shim.so: tests/%_shim.c Makefile | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(BASEFLAGS) $(CFLAGS) -shared -fPIC -o $@ $<

# The configuration without the daemon, for tests/conf.
$(O)/conf-tool: $(call obj,tests/conf/tool.c $(CONF) $(PROTO))
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_CONF)

# Prints what the tables say, for tests/docs.sh to look for in the manuals.
$(O)/words: $(O)/tests/words.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/hotpath: $(O)/tests/bench/hotpath.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@ $^ $(LIBS_JOBS)

$(O)/contend: $(O)/tests/bench/contend.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_JOBS) -lm

$(O)/load: $(call obj,$(LOAD)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/drive: $(call obj,$(DRIVE)) $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_REDIS)

$(O)/market: $(call obj,$(MARKET)) $(O)/libredlock.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_REDIS)

# The examples of libredlock(3) as they are printed: the statements of the first one become a function.
$(O)/gen/printed.inc: client/lib/libredlock.3 | $(FIRST)
	@mkdir -p $(@D)
	$(Q)awk '/^[.]Ed/ { if (inside && n == 1) print "\treturn r;\n}"; inside = 0 } inside { gsub(/\\e/, "\\"); print } \
		/^[.]Sh EXAMPLES/ { examples = 1 } examples && /^[.]Bd/ { inside = 1; if (++n == 1) print "static int first(void)\n{" }' $< >$@
$(O)/tests/func/caller.o: $(O)/gen/printed.inc
$(O)/caller: $(O)/tests/func/caller.o $(O)/libredlock.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/ceiling: $(O)/tests/bench/ceiling.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^

$(O)/memory_bench: $(O)/tests/bench/memory_bench.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_JOBS)

$(O)/script_bench: $(O)/tests/bench/script_bench.o $(O)/parts.a
	$(call say,LD)
	$(Q)$(LINK) -o $@ $^ $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT)

-include $(call depends,$(UNIT) $(FIXTURE) $(SIM) $(WORLD) $(FUZZ) $(STORY) $(SAME) $(LOAD) $(DRIVE) $(MARKET) $(PROGRAMS))

# --- tests: each of these targets ends with the line "N passed, N failed" --------------------------------------------

# These mostly wait, or measure time.
SUITES_WAIT    := unit clients-short func load-short bench-short
# These compute, beside the others and at low priority.
SUITES_COMPUTE := compilers layers cppcheck docs conf deployment installed exposure hotpath simulated fuzz
# These wait, and measure nothing.
SUITES_BESIDE  := faults-short sanitize-func sanitize-unit
# One build with sanitizers serves the tests and the fuzzers.
SANITIZED := O=$(O)/sanitize CC=$(CLANG) SAN=fuzzer-no-link,address,undefined
# Of the tests under sanitizers `check` runs a selection: suites and modules about what reads bytes from outside (clients, servers, files, the state that the
# next process goes on with), and of the fuzzers' inputs each fourth. All else is run whole, as it is quick. It draws nothing: what it runs is the same for each
# commit, so a commit fails for a fault of its own, or all commits do. Nor does it bound real time: a busy machine is late. `make nightly` leaves nothing out,
# draws anew and bounds time.
SELECTED ?=
SELECTED_UNIT := $(addprefix unit/,base proto conf store redis net core/resume)
SELECTED_FUNC := $(addprefix test_,disguise garbage jobs library locks other_protocols redis_nonsense requests resume_journal restart restart_store session_nc \
	shared tls users web_snapshot)
CHECK_SEED := 1

# What the first suites need is built first, on all cores; what cannot be built fails in its suite.
build-first: | $(FIRST)
	@echo "== building"
	-+@$(SUBMAKE) -k $(JOBS) all $(O)/unit $(O)/load $(FAULT_PROGRAMS)

# A suite of unit tests has one process here: each costs several milliseconds.
check: build-first ## all suites, of the tests under sanitizers a selection, the same for each commit; the last line is the sum
	@echo "== testing, some six minutes: what a suite says stands in $(O)/check, and here once it has ended"
	+@REDLOCKD_SEED=$(CHECK_SEED) MAKE="$(MAKE) SELECTED=1 SEED=$(CHECK_SEED) FAULTS_ARGS=--patient UNIT_SHARED=1" \
		$(PYTHON) -B tests/run.py $(O)/check $(SUITES_WAIT) -- $(SUITES_COMPUTE) -- $(SUITES_BESIDE)

nightly: build-first ## what `check` runs, with nothing left out and other draws each time; then packages and images, openapi, api-storm, clients, sweep, mutants, faults, faults-planted and load; some hours
	+@status=0; MAKE="$(MAKE)" SUITE_SECONDS=7200 $(PYTHON) -B tests/run.py $(O)/nightly $(SUITES_WAIT) -- $(SUITES_COMPUTE) -- $(SUITES_BESIDE) || status=1; \
		for suite in kubernetes-checked rpm-checked compose-checked container-checked container-arm64-checked debs-checked openapi api-storm clients sweep mutants faults faults-planted load; do $(SUBMAKE) $$suite || { echo "failed: $$suite"; status=1; }; done; exit $$status

# A test that hangs is ended after so many times 4 s. This bound measures nothing: a loaded machine is slow.
UNIT_PATIENCE ?= 8
unit: $(O)/unit ## unit tests; UNIT_ARGS= names the suites to run
	@CK_TIMEOUT_MULTIPLIER=$(UNIT_PATIENCE) $(O)/unit $(UNIT_ARGS)

func: all $(if $(SAN),,$(O)/other-structures/redlockd) $(O)/clock_shim.so $(O)/market $(O)/caller ## function tests: real daemons, real Redis servers; FUNC_ARGS= names the tests to run
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/func/run.py $(FUNC_ARGS)

openapi: all ## what listen.api answers, against docs/openapi.yaml: requests drawn by schemathesis, which is fetched from PyPI; about a minute
	@$(PYTHON) -B tests/api/openapi.py $(O) $(SEED)
api-storm: build-sanitized ## many clients of listen.api, whose requests are cut, while sessions are killed and the daemon restarts; two minutes, SEED=
	@$(PYTHON) -B tests/api/storm.py $(O)/sanitize 120 $(SEED)

CLIENTS_ARGS ?=
clients: all $(O)/clock_shim.so $(CLIENTS) ## the libraries of other languages: conformance cases, planted mistakes, real faults; CLIENTS_ARGS= names parts, see tests/clients/README.md
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/clients/suite.py $(if $(SEED),--seed $(SEED)) $(CLIENTS_ARGS)
clients-short: all $(O)/clock_shim.so $(CLIENTS) ## a selection of these
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/clients/suite.py --short $(if $(SEED),--seed $(SEED))

servers: ## the Redis and Valkey of a later Debian in $(O)/servers, for REDIS_SERVER= of unit, func and faults
	@sh tests/servers.sh $(O)/servers

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
	+@$(SUBMAKE) $(SANITIZED) SANITIZE= $@
else
faults: all $(FAULT_PROGRAMS) ## the fault matrix on real Redis servers: all rows, or ROW=; a fresh SEED= each time; SANITIZE=1: instrumented; some twenty minutes
	@$(FAULTS_RUN) $(ROW)
faults-planted: all $(O)/clock_shim.so ## further planted mistakes, each of which a row must find
	@$(FAULTS_RUN) --short --planted $(ROW)
faults-short: all $(FAULT_PROGRAMS) ## a selection of the fault matrix, with short schedules
	@$(FAULTS_RUN) --short --jobs 3 $(ROW)
endif

layers: $(call obj,$(PROTO) $(CONF) conf/docgen.c $(DAEMON_BASE) $(CORE) $(STORE) $(REDIS) $(NET) $(WEB) $(DAEMON) daemon/main/main.c $(CLIENT) $(CLIENT_TLS) $(CLI) client/cli/command/completion.c) ## which files include and call which others, compared with the tables
	@CC="$(CC)" LUA="$(FLAGS_LUA) $(LINK_LUA)" sh tests/layers.sh $(O) $(CC) $(filter-out -I. -MMD -MP -W%,$(BASEFLAGS))

CPPCHECK ?= warning,performance,portability
cppcheck: | $(FIRST) ## the quickest part of lint: what cppcheck takes for a mistake
	@sh tests/cppcheck.sh $(CPPCHECK) $(LINT_FLAGS) -- $(PRODUCT)

docs: $(O)/redlockd $(O)/redlock $(O)/words $(O)/docgen $(O)/figures $(O)/states ## the manuals say all that the tables and programs know
	@MAKE="$(SUBMAKE)" sh tests/docs.sh $(O) $(MAN)

conf: $(O)/redlockd $(O)/conf-tool $(O)/conf-docgen ## configurations, good and bad, against what must be said about them
	@sh tests/conf/run.sh $(O)

deployment: $(O)/redlockd $(O)/redlock ## files of contrib for compose, Kubernetes and rpm against the tree, and one version everywhere
	@$(PYTHON) -B tests/deployment.py $(O)
kubernetes-checked: ## contrib/kubernetes, rendered by kustomize, against the schemas of Kubernetes; both checkers come from the Go proxy, the schemas from PyPI
	@$(PYTHON) -B tests/deployment.py $(O) schemas
compose-checked: ## start contrib/compose where docker answers, or in podman (as root), and lock through it
	@sh tests/compose.sh $(O)/compose
rpm-checked: all $(SHARED) ## the packages of contrib/rpm, built in a clean root (as root) or in a folder of their own; they have what install puts there
	+@MAKE="$(SUBMAKE)" sh tests/rpm.sh $(O)/rpm $(PACKAGES_BUILD)

hotpath: $(O)/hotpath ## instructions and allocations for one LOCK and UNLOCK, held under a ceiling
	@sh tests/bench/hotpath.sh $(O)

CASE ?=
load: all $(O)/load ## load and limits: many sessions, many names, floods beside well-behaved clients; all cases, or CASE=; some minutes
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/load/run.py $(if $(SEED),--seed $(SEED)) $(CASE)
load-short: all $(O)/load ## a selection of the load cases, at small size
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/load/run.py --short $(if $(SEED),--seed $(SEED)) $(CASE)

restart-load: all $(O)/load ## 1,000 clients and 200,000 requests over five restarts by SIGUSR2: requests, failures, the longest pause; in memory, and on three Redis servers with two loads
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/load/run.py $(if $(SEED),--seed $(SEED)) restarts restarts-redis restarts-redis-busy

SCENARIO ?=
BENCH_PROGRAMS := $(O)/drive $(O)/ceiling $(O)/load
bench: all $(BENCH_PROGRAMS) ## how fast it is, beside Redis without it and a server that only locks: goals and figures; all scenarios, or SCENARIO=; some four minutes
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/bench/run.py --json $(O)/bench.json $(SCENARIO)
bench-full: all $(BENCH_PROGRAMS) ## the benchmarks for longer, and what a pair costs as sessions, names and waiters grow; half an hour
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/bench/run.py --full --json $(O)/bench-full.json $(SCENARIO)
bench-short: all $(BENCH_PROGRAMS) ## each benchmark for a moment, to see that it works
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/bench/run.py --short

MARKET_SECONDS ?= 5
market: all $(O)/market ## a market on a real Redis, without a lock, with redlockd's and with SET NX PX: bought, retries, waits; MARKET_SECONDS= (5) for each cell
	@REDLOCKD_BUILD=$(O) $(PYTHON) -B tests/bench/market.py --seconds $(MARKET_SECONDS) $(MARKET_ARGS)

OF ?=
results: ## run the goal OF="goal NAME=value …", and keep what it printed last in tests/RESULTS.md, or in tests/bench/RESULTS.md
	+@$(PYTHON) -B tests/results.py $(if $(filter bench% market%,$(OF)),tests/bench,tests)/RESULTS.md "$(OF)"

bench-contend: $(O)/contend ## K daemons ask N stores for one name at once: time and commands until the first grant
	@$(O)/contend

SEEDS ?= 1000
FROM  ?= 1
sim: $(O)/sim ## simulated worlds, SEEDS= of them from FROM= on, each a function of its seed
	@$(O)/sim --seeds $(SEEDS) --from $(FROM) --jobs 2

WORLDS ?= 1000
sim-sanitized: | $(FIRST) ## WORLDS= (1000) simulated worlds under both sanitizers, other ones each time, or from FROM= on
	+@$(SUBMAKE) $(JOBS) O=$(O)/sim-sanitized SAN=address,undefined $(O)/sim-sanitized/sim
	@from=$(if $(filter-out file,$(origin FROM)),$(FROM),$$(date +%s)000) && echo "worlds from seed $$from on" && \
		$(O)/sim-sanitized/sim --seeds $(WORLDS) --from $$from --jobs $$(getconf _NPROCESSORS_ONLN) --keep-going

SIM_CHECK_SEEDS ?= 300
simulated: $(O)/sim ## the simulator's own tests, what it has found, and a fixed short sweep: SIM_CHECK_SEEDS= worlds from the first one on
	@sh tests/sim/check.sh $(O) $(SIM_CHECK_SEEDS)

MINUTES ?=
sweep: $(O)/sim fast ## simulated worlds from where the last sweep stopped, on all processors, for MINUTES= (10) or SEEDS=; FROM= begins elsewhere
	@sh tests/sim/alike.sh $(O)/sim $(FAST)/sim
	@$(FAST)/sim --sweep $(O) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(filter-out file,$(origin SEEDS)),--seeds $(SEEDS)) $(if $(filter-out file,$(origin FROM)),--from $(FROM))

vary: $(O)/sim fast ## worlds near those of the corpus: variations of each plan, from another number each time, on all processors, for MINUTES= (5)
	@sh tests/sim/alike.sh $(O)/sim $(FAST)/sim
	@$(FAST)/sim --vary tests/sim/corpus/*.plan --minutes $(or $(MINUTES),5) --from $$(date +%s)000 --jobs $$(getconf _NPROCESSORS_ONLN) --keep-going --into $(O)/vary

COVERAGE_SEEDS ?= 2000
COVERED := $(O)/coverage
# clang counts the conditions of the source, whatever the optimiser makes of them. The simulator itself is compiled as it always is: in which order C
# evaluates the arguments of a call is the compiler's choice, so another one would draw other worlds from the same seeds.
sim-coverage sim-coverage-floors: COVER = $(CLANG) -fprofile-instr-generate -fcoverage-mapping
sim-coverage: | $(FIRST) ## how much of each file of the core, the protocol and the scripts COVERAGE_SEEDS= worlds run, held above tests/sim/cover/floors
	+@$(SUBMAKE) $(JOBS) O=$(COVERED) SAN= CFLAGS='-O2 -g' COVER='$(COVER)' LDFLAGS= HARDEN= HARDEN_LD= $(COVERED)/sim-covered
	@PYTHON=$(PYTHON) sh tests/sim/coverage.sh $(COVERED) $(CLANG) $(COVERAGE_SEEDS) $(FROM) $(COVERAGE_WRITE)
sim-coverage-floors: ## the same, and this run makes the floors
	+@$(SUBMAKE) COVERAGE_WRITE=--write sim-coverage

MUTANTS ?=
mutants: $(O)/sim $(O)/unit ## plant the known mistakes, one at a time (or MUTANTS=), and see the simulator find each
	+@MAKE="$(SUBMAKE)" sh tests/sim/mutants.sh $(O) $(MUTANTS)

BASE ?= HEAD^
RENAMED ?=
same: $(addprefix $(O)/same-,worlds fuzz_service fuzz_session) ## does the core do what it did at BASE=, byte for byte? In SEEDS= worlds from FROM=, and the fuzzers' inputs; RENAMED= is a sed script
	+@MAKE="$(SUBMAKE) $(JOBS)" sh tests/same/same.sh $(O) "$(BASE)" $(FROM) $(SEEDS) "$(RENAMED)"

FUZZ_SECONDS ?= 4
FUZZ_SEED ?= 1
fuzz: build-fuzzers ## libFuzzer, FUZZ_SECONDS= for each target; FUZZ_SEED=0 draws another seed each time
	@sh tests/fuzz/run.sh $(O)/sanitize $(if $(SELECTED),2,$(FUZZ_SECONDS)) $(FUZZ_SEED) $(if $(SELECTED),4,1) $(FUZZ)
fuzz-minimise: build-fuzzers ## the fewest inputs that reach all that the corpora and what `make fuzz` has found reach
	@sh tests/fuzz/minimise.sh $(O)/sanitize $(FUZZ)

# With CC="clang -fsyntax-only" they are only read.
build-objects: $(call obj,$(sort $(CLI) daemon/main/main.c $(UNIT) $(FIXTURE) $(SIM) $(WORLD) $(PARTS))) $(GENERATED)
compilers: ## clean builds with the compiler and with sanitizers, and what the other compiler has to say: clang or gcc
	+@CC="$(CC)" MAKE="$(SUBMAKE)" JOBS="$(JOBS)" sh tests/compilers.sh $(O) "$(CLANG)" $(if $(SELECTED),short)

exposure: ## how systemd judges the sandbox of the unit, held under a ceiling
	@sh tests/systemd/exposure.sh

systemd: all $(O)/load ## restarts under a systemd of its own, while clients hold, wait and ask (as root)
	+@MAKE="$(SUBMAKE)" sh tests/systemd/restart.sh $(O)

first-minutes: deb ## what the README tells a newcomer to type, on a fresh Debian 12 under a systemd of its own, and what that prints (as root); needs mmdebstrap
	@sh tests/systemd/first.sh $(O)/first $(O)/deb

installed: $(O)/redlockd $(O)/redlock $(O)/libredlock.a ## what install puts where, and that it works from there
	+@CC="$(CC)" MAKE="$(SUBMAKE)" sh tests/install.sh

asan: ## unit and function tests under AddressSanitizer
	+@MAKE="$(MAKE) O=$(O)/asan SAN=address" $(PYTHON) -B tests/run.py $(O)/asan/check unit func
ubsan: ## unit and function tests under UndefinedBehaviorSanitizer
	+@MAKE="$(MAKE) O=$(O)/ubsan SAN=undefined" $(PYTHON) -B tests/run.py $(O)/ubsan/check unit func
# Under both at once: what `check` runs a selection of.
sanitize: ## unit and function tests under both sanitizers
	+@MAKE="$(MAKE)" $(PYTHON) -B tests/run.py $(O)/sanitize/check sanitize-unit sanitize-func
sanitize-unit sanitize-func: build-sanitized ## one of these two; sanitize-func likewise
	+@UNIT_SHARED=1 $(SUBMAKE) $(SANITIZED) $(SANITIZED_UNITS) $(@:sanitize-%=%) $(if $(SELECTED),FUNC_ARGS="$(SELECTED_FUNC)")
SANITIZED_UNITS = $(if $(SELECTED),UNIT_FOLDERS="$(SELECTED_UNIT)")

# Suites that run beside each other may want it: one builds, the other waits.
build-sanitized: | $(FIRST)
	@mkdir -p $(O)/sanitize
	+@flock $(O)/sanitize/lock $(SUBMAKE) $(SANITIZED) $(SANITIZED_UNITS) $(JOBS) all $(O)/sanitize/unit
build-fuzzers: | $(FIRST)
	@mkdir -p $(O)/sanitize
	+@flock $(O)/sanitize/lock $(SUBMAKE) $(SANITIZED) $(JOBS) $(patsubst tests/fuzz/%.c,$(O)/sanitize/%,$(FUZZ))

$(O)/fuzz_session: $(call obj,$(STORY))
$(O)/fuzz_fields: $(call obj,daemon/api/fields.c daemon/web/translate.c)
$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/inner.a
	$(call say,LD)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_LOOP) $(LIBS_REDIS) $(LIBS_JOBS) $(LIBS_CONF) $(LIBS_CRYPT)

.PHONY: $(CLIENTS) openapi api-storm kubernetes-checked compose-checked rpm-checked check clients nightly build-first servers first-minutes fuzz-minimise sim sim-sanitized sim-coverage sim-coverage-floors bench bench-full bench-contend market results mutants sweep vary fast load faults faults-planted $(SUITES_WAIT) $(SUITES_COMPUTE) $(SUITES_BESIDE) same asan ubsan sanitize build-sanitized build-fuzzers build-objects
