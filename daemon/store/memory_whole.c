/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory store as a whole: how it begins, continues in another process, and ends; and its keys for the state file and the tests. */
#include "daemon/base/mem.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/memory.h"
#include "daemon/store/memory_key.h"

#define UNWRITTEN_MOST ((size_t)256 << 10) /* to write that many takes about a millisecond */

/* The facts for probes that never change while the process runs. */
static void memory_describe(struct memory *m)
{
	m->probe.run_id = m->probe.replid = span_of(m->run_id);
	m->probe.version = SPAN(REDLOCKD_VERSION);
	m->probe.role = SPAN("master");
	m->probe.policy = SPAN("noeviction");
	m->probe.own_data = true;
}

struct memory *memory_new(const struct memory_conf *conf)
{
	struct memory *m = mem_alloc(sizeof(*m));

	keyspace_init(&m->keys, conf->seed, conf->file);
	buf_init(&m->marker);
	buf_init(&m->text);
	m->home = home_new(conf->seed);
	m->epoch_us = conf->epoch_us;
	m->skew_us = conf->skew_us;
	m->tolerance_us = conf->tolerance_us;
	m->run_id = mem_text(conf->run_id);
	memory_describe(m);
	return m;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	keyspace_release(&m->keys);
	buf_release(&m->marker);
	table_release(&m->table);
	home_free(m->home);
	buf_release(&m->text);
	mem_free(m->run_id);
	mem_free(m);
}

void memory_restore_jobs(struct memory *m, struct job_file *file, int64_t later_ms, struct jobs_found *ret)
{
	jobs_restore(&m->home->jobs, file, later_ms, ret);
}

int memory_write_jobs(struct memory *m)
{
	return jobs_write(&m->home->jobs);
}

bool memory_answer_is_unwritten(const struct memory *m, const struct call *call, const struct answer *a)
{
	return call->kind == CALL_HOME && span_starts(call->value, SPAN("1:j")) && a->class == ANSWER_EXECUTED && a->code != 'T' &&
	       jobs_are_unwritten(&m->home->jobs);
}

bool memory_unwritten_is_much(const struct memory *m)
{
	return m->home->jobs.unwritten > UNWRITTEN_MOST;
}

void memory_unmarked(struct memory *m, int error)
{
	m->unmarked = error;
}

bool memory_look(struct memory *m)
{
	jobs_read_again(&m->home->jobs);
	jobs_look(&m->home->jobs);
	return keyspace_move_to_file(&m->keys);
}

size_t memory_count(const struct memory *m)
{
	return m->keys.names.count;
}

int64_t memory_clock(const struct memory *m, struct instant now)
{
	return clock_of(m, now);
}

struct span memory_marker(const struct memory *m)
{
	return marker_of(m);
}

int64_t memory_fence(const struct memory *m)
{
	return m->fence;
}

void memory_set_fence(struct memory *m, int64_t fence)
{
	fence_lift(m, fence);
}

/* The same for any moment, rounded up to a millisecond of the server's clock. */
static struct instant until_round(const struct memory *m, struct instant until)
{
	int64_t server;

	if (until.us == INSTANT_NEVER.us || __builtin_add_overflow(until.us, m->epoch_us, &server) || server > INT64_MAX - 1000)
		return INSTANT_NEVER;
	return memory_until(m, (server + 999) / 1000 - 1);
}

void memory_put(struct memory *m, struct span name, struct span value, struct instant until)
{
	keyspace_set(&m->keys, keyspace_find(&m->keys, name), name, value, until_round(m, until));
}

static struct span shares_later(struct memory *m, bool broken, int64_t later_ms)
{
	for (unsigned i = 0; i < m->shares.count; i++)
		m->shares.share[i].ends_ms += later_ms;
	buf_clear(&m->text);
	if (broken)
		buf_append(&m->text, "!", 1);
	share_list_write(&m->shares, &m->text, 0);
	return (struct span){buf_begin(&m->text), buf_length(&m->text)};
}

void memory_put_later(struct memory *m, struct span name, struct span value, struct instant until, int64_t later_ms)
{
	bool broken = span_starts(value, SPAN("!"));
	struct span bare = {value.p + broken, value.n - broken};

	if (later_ms > 0 && share_list_read(&m->shares, bare, 0))
		value = shares_later(m, broken, later_ms);
	memory_put(m, name, value, until);
}

void memory_put_foreign(struct memory *m, struct span name, struct instant until)
{
	keyspace_set(&m->keys, keyspace_find(&m->keys, name), name, (struct span){0}, until_round(m, until))->foreign = true;
}

void memory_remove(struct memory *m, struct span name)
{
	struct key *key = keyspace_find(&m->keys, name);

	if (key)
		keyspace_drop(&m->keys, key);
}

bool memory_get(struct memory *m, struct span name, struct instant now, struct span *ret_value, struct instant *ret_until)
{
	const struct key *key = keyspace_find(&m->keys, name);

	if (!key || !key_live(key, now))
		return false;
	*ret_value = key_value(key);
	*ret_until = key->until;
	return true;
}

void memory_each(struct memory *m, struct instant now,
		 void (*visit)(void *context, struct span name, struct span value, struct instant until), void *context)
{
	size_t n, i;
	struct key **sorted = keyspace_sorted(&m->keys, now, &n);

	for (i = 0; i < n; i++)
		visit(context, key_name(sorted[i]), key_value(sorted[i]), sorted[i]->until);
	mem_free(sorted);
}
