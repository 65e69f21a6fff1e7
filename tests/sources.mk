# SPDX-License-Identifier: BSD-2-Clause
# The sources of the tests, one a line. tests/tests.mk includes it.

# What tests set up: servers, daemons, clients. The unit tests themselves are listed in tests/unit/suites.def.
FIXTURE := \
	tests/fixture/answer_sink.c \
	tests/fixture/client_clock.c \
	tests/fixture/clocked_redis.c \
	tests/fixture/cluster.c \
	tests/fixture/cluster_journal.c \
	tests/fixture/cluster_promises.c \
	tests/fixture/cluster_sessions.c \
	tests/fixture/cluster_step.c \
	tests/fixture/cluster_stores.c \
	tests/fixture/fake_daemon.c \
	tests/fixture/fake_redis.c \
	tests/fixture/files.c \
	tests/fixture/home_run.c \
	tests/fixture/jobs_alike.c \
	tests/fixture/journal_run.c \
	tests/fixture/link_to_fake.c \
	tests/fixture/loop.c \
	tests/fixture/net_loop.c \
	tests/fixture/promises.c \
	tests/fixture/random_calls.c \
	tests/fixture/real_redis.c \
	tests/fixture/real_upstream.c \
	tests/fixture/redis_pair.c \
	tests/fixture/resolver_loop.c \
	tests/fixture/ruled.c \
	tests/fixture/scripted_session.c \
	tests/fixture/seed.c \
	tests/fixture/store_run.c

# Servers that run the shipped scripts, for the simulator and for unit tests.
SIM := \
	tests/sim/redis/binding.c \
	tests/sim/redis/data.c \
	tests/sim/redis/embedded.c \
	tests/sim/redis/image.c \
	tests/sim/redis/interpreter.c \
	tests/sim/redis/items.c \
	tests/sim/redis/model.c \
	tests/sim/redis/model_hash.c \
	tests/sim/redis/model_key.c \
	tests/sim/redis/model_server.c \
	tests/sim/redis/model_string.c \
	tests/sim/redis/model_zset.c \
	tests/sim/redis/node.c \
	tests/sim/redis/node_faults.c \
	tests/sim/redis/probe_memo.c \
	tests/sim/redis/redis.c \
	tests/sim/redis/sandbox.c \
	tests/sim/redis/sha1.c \
	tests/sim/redis/strtod.c \
	tests/sim/redis/texts.c \
	tests/sim/redis/value.c \
	tests/sim/redis/wire.c

# The simulated world, and the program that runs it.
WORLD := \
	tests/sim/main.c \
	tests/sim/check/account.c \
	tests/sim/check/broken.c \
	tests/sim/check/carried.c \
	tests/sim/check/checker.c \
	tests/sim/check/delays.c \
	tests/sim/check/detached.c \
	tests/sim/check/doubts.c \
	tests/sim/check/eviction.c \
	tests/sim/check/floors.c \
	tests/sim/check/grants.c \
	tests/sim/check/handover.c \
	tests/sim/check/job_locks.c \
	tests/sim/check/keys.c \
	tests/sim/check/known_node.c \
	tests/sim/check/extended.c \
	tests/sim/check/metered.c \
	tests/sim/check/chores.c \
	tests/sim/check/named.c \
	tests/sim/check/nests.c \
	tests/sim/check/notices.c \
	tests/sim/check/places.c \
	tests/sim/check/progress.c \
	tests/sim/check/gathered.c \
	tests/sim/check/permitted.c \
	tests/sim/check/read_line.c \
	tests/sim/check/readers.c \
	tests/sim/check/recount.c \
	tests/sim/check/released.c \
	tests/sim/check/repeated.c \
	tests/sim/check/reply_time.c \
	tests/sim/check/resumed.c \
	tests/sim/check/ruled.c \
	tests/sim/check/running.c \
	tests/sim/check/scripts.c \
	tests/sim/check/tickets.c \
	tests/sim/check/told.c \
	tests/sim/check/track.c \
	tests/sim/check/watched.c \
	tests/sim/client/breaker.c \
	tests/sim/client/client.c \
	tests/sim/client/hold.c \
	tests/sim/client/job_lock.c \
	tests/sim/client/repeat_answer.c \
	tests/sim/client/repeat_jobs.c \
	tests/sim/client/repeater.c \
	tests/sim/client/reply.c \
	tests/sim/client/namer.c \
	tests/sim/client/nester.c \
	tests/sim/client/rater.c \
	tests/sim/client/worker.c \
	tests/sim/client/gatherer.c \
	tests/sim/client/permit_owner.c \
	tests/sim/client/permitter.c \
	tests/sim/client/reader.c \
	tests/sim/client/request.c \
	tests/sim/client/resource.c \
	tests/sim/client/resume.c \
	tests/sim/client/roll.c \
	tests/sim/client/side_requests.c \
	tests/sim/client/storm.c \
	tests/sim/client/task.c \
	tests/sim/plan/bunched.c \
	tests/sim/plan/clock_step.c \
	tests/sim/plan/carries.c \
	tests/sim/plan/drains.c \
	tests/sim/plan/draw.c \
	tests/sim/plan/flapping.c \
	tests/sim/plan/memory.c \
	tests/sim/plan/plan.c \
	tests/sim/plan/rare.c \
	tests/sim/plan/servers.c \
	tests/sim/plan/spread.c \
	tests/sim/plan/stream.c \
	tests/sim/plan/vary.c \
	tests/sim/plan/vary_bounds.c \
	tests/sim/scene/adoption.c \
	tests/sim/scene/crossing.c \
	tests/sim/scene/deletion.c \
	tests/sim/scene/flushes.c \
	tests/sim/scene/holder.c \
	tests/sim/scene/memory.c \
	tests/sim/scene/overtaking.c \
	tests/sim/scene/renewal.c \
	tests/sim/scene/scene.c \
	tests/sim/scene/session.c \
	tests/sim/scene/store.c \
	tests/sim/stage/dead_head.c \
	tests/sim/stage/fault.c \
	tests/sim/stage/finale.c \
	tests/sim/stage/leftovers.c \
	tests/sim/stage/node_fault.c \
	tests/sim/stage/stages.c \
	tests/sim/sweep/campaign.c \
	tests/sim/sweep/report.c \
	tests/sim/sweep/selftest.c \
	tests/sim/sweep/shrink.c \
	tests/sim/sweep/sweep.c \
	tests/sim/sweep/variations.c \
	tests/sim/sweep/wrap.c \
	tests/sim/world/conn.c \
	tests/sim/world/daemon.c \
	tests/sim/world/daemon_carry.c \
	tests/sim/world/daemon_conf.c \
	tests/sim/world/daemon_drain.c \
	tests/sim/world/daemon_metrics.c \
	tests/sim/world/daemon_rules.c \
	tests/sim/world/daemon_step.c \
	tests/sim/world/files.c \
	tests/sim/world/flight.c \
	tests/sim/world/host.c \
	tests/sim/world/journal.c \
	tests/sim/world/line.c \
	tests/sim/world/link.c \
	tests/sim/world/rules.c \
	tests/sim/world/server.c \
	tests/sim/world/store.c \
	tests/sim/world/subscriber.c \
	tests/sim/world/world.c

# The sources of the product that the simulator compiles once more, to kill a daemon where they put stores in order: tests/sim/world/kill_point.h.
KILLABLE := \
	daemon/store/keyfile.c \
	daemon/store/keyspace.c \
	daemon/store/state.c

# libFuzzer targets: tests/fuzz/fuzz_noun.c, seeds in tests/fuzz/corpus/fuzz_noun/.
FUZZ := \
	tests/fuzz/fuzz_request.c \
	tests/fuzz/fuzz_reply.c \
	tests/fuzz/fuzz_card.c \
	tests/fuzz/fuzz_conf.c \
	tests/fuzz/fuzz_fields.c \
	tests/fuzz/fuzz_resp.c \
	tests/fuzz/fuzz_stream.c \
	tests/fuzz/fuzz_service.c \
	tests/fuzz/fuzz_session.c

# What the clients of fuzz_session say.
STORY := \
	tests/fuzz/story_line.c

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

# The clients of the benchmarks.
DRIVE := \
	tests/bench/drive/clients.c \
	tests/bench/drive/lines.c \
	tests/bench/drive/main.c \
	tests/bench/drive/redis.c \
	tests/bench/drive/stream.c \
	tests/load/gen.c

# The market: an example of libredlock, and a benchmark.
MARKET := \
	tests/bench/market/actor.c \
	tests/bench/market/guard.c \
	tests/bench/market/main.c \
	tests/bench/market/shop.c \
	tests/bench/market/sums.c

# Further programs.
PROGRAMS := \
	tests/conf/tool.c \
	tests/words.c \
	tests/bench/ceiling.c \
	tests/bench/contend.c \
	tests/bench/hotpath.c \
	tests/bench/memory_bench.c \
	tests/bench/script_bench.c
