/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to a simulated server: it dies, restarts, loses its memory, fails, changes its role. */
#include "daemon/base/mem.h"
#include "tests/sim/redis/node_internal.h"

#include <stdio.h>
#include <stdlib.h>

void sim_node_name(struct sim_node *n, const char *run_id)
{
	snprintf(n->redis.model.run_id, sizeof(n->redis.model.run_id), "%s", run_id);
	snprintf(n->redis.model.replid, sizeof(n->redis.model.replid), "%s", run_id);
}

static void process_start(struct sim_node *n, const char *run_id)
{
	sim_node_name(n, run_id);
	n->redis.model.fed = false;
	n->redis.model.evicted = 0;
	memo_forget(&n->memo);
	binding_flush(n->redis.binding);
}

void sim_node_restart_blank(struct sim_node *n, const char *run_id)
{
	process_start(n, run_id);
	data_clear(&n->redis.model.data);
}

static void expired_drop(struct sim_node *n, int64_t wall_us)
{
	size_t count, i;
	struct datum **sorted = data_sorted(&n->redis.model.data, &count);

	for (i = 0; i < count; i++)
		if (!datum_live(sorted[i], wall_us / 1000))
			data_remove(&n->redis.model.data, sorted[i]);
	free(sorted);
}

void sim_node_restart_whole(struct sim_node *n, const char *run_id, int64_t wall_us)
{
	process_start(n, run_id);
	expired_drop(n, wall_us);
}

void sim_node_snapshot(struct sim_node *n)
{
	data_copy(&n->snapshot, &n->redis.model.data);
	strcpy(n->snapped_run_id, n->redis.model.run_id);
	strcpy(n->snapped_replid, n->redis.model.replid);
	n->snapped = true;
}

bool sim_node_roll_back(struct sim_node *n, int64_t wall_us)
{
	if (!n->snapped)
		return false;
	data_copy(&n->redis.model.data, &n->snapshot);
	strcpy(n->redis.model.run_id, n->snapped_run_id);
	strcpy(n->redis.model.replid, n->snapped_replid);
	expired_drop(n, wall_us);
	return true;
}

void sim_node_restart_old(struct sim_node *n, const char *run_id, int64_t wall_us)
{
	process_start(n, run_id);
	if (n->snapped)
		data_copy(&n->redis.model.data, &n->snapshot);
	else
		data_clear(&n->redis.model.data);
	expired_drop(n, wall_us);
}

void sim_node_flush(struct sim_node *n)
{
	data_clear(&n->redis.model.data);
}

void sim_node_fail(struct sim_node *n, const char *error)
{
	free(n->redis.model.error);
	n->redis.model.error = error ? mem_copy(error, strlen(error)) : NULL;
}

bool sim_node_is_well(const struct sim_node *n)
{
	return !n->redis.model.error && !model_is_replica(&n->redis.model);
}

bool sim_node_is_named(const struct sim_node *n, struct span marker)
{
	const struct model *m = &n->redis.model;
	char both[sizeof(m->run_id) + sizeof(m->replid) + 4];
	int len = snprintf(both, sizeof(both), "|%s|%s|", m->run_id, m->replid);

	return memmem(marker.p, marker.n, both, (size_t)len) != NULL;
}

void sim_node_set_replid(struct sim_node *n, const char *replid)
{
	snprintf(n->redis.model.replid, sizeof(n->redis.model.replid), "%s", replid);
}

const char *sim_node_replid(const struct sim_node *n)
{
	return n->redis.model.replid;
}

bool sim_node_has_own_data(const struct sim_node *n)
{
	return !n->redis.model.fed;
}

void sim_node_set_role(struct sim_node *n, const char *role, const char *replid)
{
	n->redis.model.fed |= strcmp(role, "master") != 0;
	snprintf(n->redis.model.role, sizeof(n->redis.model.role), "%s", role);
	snprintf(n->redis.model.replid, sizeof(n->redis.model.replid), "%s", replid);
}
