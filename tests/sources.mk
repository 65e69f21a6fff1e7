# SPDX-License-Identifier: BSD-2-Clause
# The sources of the tests, one a line. tests/tests.mk includes it.

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
	tests/unit/join_test.c \
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
	tests/sim/redis/binding.c \
	tests/sim/redis/data.c \
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
	tests/sim/redis/value.c \
	tests/sim/redis/wire.c

# The simulated world, and the program that runs it.
WORLD := \
	tests/sim/main.c \
	tests/sim/check/account.c \
	tests/sim/check/checker.c \
	tests/sim/check/detached.c \
	tests/sim/check/eviction.c \
	tests/sim/check/grants.c \
	tests/sim/check/handover.c \
	tests/sim/check/keys.c \
	tests/sim/check/known_node.c \
	tests/sim/check/lineage.c \
	tests/sim/check/notices.c \
	tests/sim/check/places.c \
	tests/sim/check/progress.c \
	tests/sim/check/recount.c \
	tests/sim/check/released.c \
	tests/sim/check/reply_time.c \
	tests/sim/check/resumed.c \
	tests/sim/check/scripts.c \
	tests/sim/check/tickets.c \
	tests/sim/check/track.c \
	tests/sim/client/client.c \
	tests/sim/client/hold.c \
	tests/sim/client/reply.c \
	tests/sim/client/request.c \
	tests/sim/client/resource.c \
	tests/sim/client/resume.c \
	tests/sim/client/side_requests.c \
	tests/sim/client/storm.c \
	tests/sim/client/task.c \
	tests/sim/plan/bunched.c \
	tests/sim/plan/clock_step.c \
	tests/sim/plan/draw.c \
	tests/sim/plan/flapping.c \
	tests/sim/plan/plan.c \
	tests/sim/plan/rare.c \
	tests/sim/plan/stream.c \
	tests/sim/scene/adoption.c \
	tests/sim/scene/crossing.c \
	tests/sim/scene/deletion.c \
	tests/sim/scene/flushes.c \
	tests/sim/scene/holder.c \
	tests/sim/scene/memory.c \
	tests/sim/scene/overtaking.c \
	tests/sim/scene/scene.c \
	tests/sim/scene/session.c \
	tests/sim/scene/store.c \
	tests/sim/stage/dead_head.c \
	tests/sim/stage/fault.c \
	tests/sim/stage/finale.c \
	tests/sim/stage/leftovers.c \
	tests/sim/stage/stages.c \
	tests/sim/sweep/campaign.c \
	tests/sim/sweep/report.c \
	tests/sim/sweep/selftest.c \
	tests/sim/sweep/shrink.c \
	tests/sim/sweep/sweep.c \
	tests/sim/sweep/wrap.c \
	tests/sim/world/conn.c \
	tests/sim/world/daemon.c \
	tests/sim/world/daemon_conf.c \
	tests/sim/world/daemon_metrics.c \
	tests/sim/world/daemon_replace.c \
	tests/sim/world/flight.c \
	tests/sim/world/host.c \
	tests/sim/world/journal.c \
	tests/sim/world/line.c \
	tests/sim/world/link.c \
	tests/sim/world/server.c \
	tests/sim/world/subscriber.c \
	tests/sim/world/world.c

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

# Further programs.
PROGRAMS := \
	tests/conf/tool.c \
	tests/words.c \
	tests/bench/contend.c \
	tests/bench/hotpath.c \
	tests/bench/memory_bench.c \
	tests/bench/upstream_bench.c
