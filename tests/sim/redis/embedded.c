/* SPDX-License-Identifier: BSD-2-Clause */
/* A node whose daemon is its own store: the same questions, answered by daemon/store. Between two runs of the daemon it holds nothing. */
#include "daemon/store/job_rows.h"
#include "daemon/store/memory.h"
#include "daemon/store/memory_key.h"
#include "tests/sim/redis/node_internal.h"

void sim_node_embed(struct sim_node *n, struct memory *memory)
{
	n->embedded = true;
	n->memory = memory;
	n->epoch_us = memory ? memory->epoch_us : n->epoch_us;
}

static struct instant instant_of(const struct sim_node *n, int64_t wall_us)
{
	return (struct instant){wall_us - n->epoch_us};
}

int64_t sim_node_wall(const struct sim_node *n, struct instant now)
{
	return now.us + n->epoch_us;
}

/* A key exists during the millisecond in which it expires. */
static int64_t expiry_of(const struct sim_node *n, struct instant until)
{
	return until.us == INSTANT_NEVER.us ? 0 : (until.us + n->epoch_us) / 1000 - 1;
}

bool embedded_get(struct sim_node *n, struct span name, int64_t wall_us, struct span *ret_value, int64_t *ret_expires_ms)
{
	struct instant until;

	if (!n->memory || !memory_get(n->memory, name, instant_of(n, wall_us), ret_value, &until))
		return false;
	*ret_expires_ms = expiry_of(n, until);
	return true;
}

/* "lock:" and the name. */
static struct span key_named(struct sim_node *n, struct span name)
{
	buf_clear(&n->key);
	buf_append(&n->key, n->keys.prefix, strlen(n->keys.prefix));
	buf_append(&n->key, name.p, name.n);
	return (struct span){buf_begin(&n->key), buf_length(&n->key)};
}

static struct span value_kept(struct sim_node *n, struct span name, int64_t wall_us)
{
	struct span value = SPAN("");
	int64_t expires;

	(void)embedded_get(n, name, wall_us, &value, &expires);
	span_keep(&n->arena, &value);
	return value;
}

void embedded_call(struct sim_node *n, const struct call *call, size_t count, int64_t wall_us, struct answer *ret_answer)
{
	for (size_t i = 0; i < count; i++) {
		struct answer *a = &ret_answer[i];
		struct span before = value_kept(n, call[i].name, wall_us), after;

		memory_call(n->memory, &call[i], instant_of(n, wall_us), a);
		span_keep(&n->arena, &a->found);
		span_keep(&n->arena, &a->text);
		if (a->probe)
			a->probe = probe_copy(&n->arena, a->probe);
		after = value_kept(n, call[i].name, wall_us);
		if (n->redis.model.data.changed && !span_equal(before, after))
			n->redis.model.data.changed(n->redis.model.data.context, key_named(n, call[i].name), before, after);
	}
}

/* Of the jobs of a queue "j:name": "h" and the id. */
bool embedded_has_field(const struct sim_node *n, struct span key, struct span field)
{
	struct span queue = {key.p + 2, key.n - 2}, id = {field.p + 1, field.n - 1};

	return n->memory && span_starts(key, SPAN("j:")) && span_starts(field, SPAN("h")) &&
	       job_row_find(job_rows_find(&n->memory->home->jobs, queue), id) != NULL;
}

struct visiting {
	struct sim_node *node;
	void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms);
	void *context;
};

static void visit_key(void *context, struct span name, struct span value, struct instant until)
{
	const struct visiting *v = context;

	v->visit(v->context, key_named(v->node, name), value, expiry_of(v->node, until));
}

void embedded_each(struct sim_node *n, int64_t wall_us, void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms),
                   void *context)
{
	if (n->memory)
		memory_each(n->memory, instant_of(n, wall_us), visit_key, &(struct visiting){n, visit, context});
}
