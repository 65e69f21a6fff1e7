/* SPDX-License-Identifier: BSD-2-Clause */
/* What each kind of fault of a server does when it begins and when it ends. */
#include "tests/sim/world/world.h"

#include <inttypes.h>
#include <stdlib.h>

/* Error replies of a server in trouble; only the first word matters. */
static const char *const error_text[] = {
	"LOADING Redis is loading the dataset in memory",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk",
	"READONLY You can't write against a read only replica.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOAUTH Authentication required.",
	"CLUSTERDOWN The cluster is down",
	"ERR something that nobody has heard of",
};
#define DELETE_SLACK_MS 3 /* a vote ends that much before its key */
#define ERROR_TEXTS (int64_t)(sizeof(error_text) / sizeof(error_text[0]))

static struct server *server_of(struct world *w, const struct fault *f)
{
	return &w->server[f->a % w->plan->nodes];
}

static struct span fault_name(const struct world *w, const struct fault *f)
{
	return span_of(name_of(f->b % w->plan->names));
}

/* Reads the next share of a key that readers hold; NULL: there is none. See daemon/redis/lua/shares.lua. */
static const char *share_next(const char *at, const char *end, struct span *ret_value, int64_t *ret_ends)
{
	const char *value = at + sizeof(" 0123456789012345,") - 1;

	if (value > end || *at != ' ')
		return NULL;
	*ret_ends = strtoll(at, NULL, 10);
	ret_value->p = value;
	while (value < end && *value != ' ')
		value++;
	ret_value->n = (size_t)(value - ret_value->p);
	return value;
}

static bool is_shared(struct span text)
{
	return span_starts(text, SPAN("R "));
}

/* For how long the server keeps this value in this form, in ms; 0: it does not. */
static int64_t node_keeps(const struct server *s, struct span name, bool shared, struct span value)
{
	int64_t now = server_wall(s) / MSEC, ends;
	struct span text, other;

	if (s->down || !sim_node_get(s->node, name, server_wall(s), &text, &ends) || is_shared(text) != shared)
		return 0;
	if (!shared)
		return span_equal(text, value) && ends > now ? ends - now : 0;
	for (const char *at = text.p + 1; (at = share_next(at, text.p + text.n, &other, &ends));)
		if (span_equal(other, value) && ends > now)
			return ends - now;
	return 0;
}

static bool others_keep(const struct world *w, const struct server *s, struct span name, bool shared, struct span value, int64_t for_ms)
{
	for (int64_t i = 0; i < w->plan->nodes; i++)
		if (&w->server[i] != s && node_keeps(&w->server[i], name, shared, value) + DELETE_SLACK_MS < for_ms)
			return false;
	return true;
}

/* Only where each who holds the name has a quorum without the vote of this node. */
static bool node_delete_one(const struct world *w, struct server *s, const struct fault *f)
{
	int64_t which = f->b % (w->plan->names + READ_NAMES), now = server_wall(s) / MSEC, ends;
	const char word[] = {'r', (char)('0' + which - w->plan->names), '\0'};
	struct span name = span_of(which < w->plan->names ? name_of(which) : word), text, value;

	if (s->down || w->plan->nodes < 3 || !sim_node_get(s->node, name, server_wall(s), &text, &ends) || text.n == 0 || text.p[0] == '!')
		return false;
	if (!is_shared(text) && !others_keep(w, s, name, false, text, ends - now))
		return false;
	for (const char *at = text.p + 1; is_shared(text) && (at = share_next(at, text.p + text.n, &value, &ends));)
		if (ends >= now && !others_keep(w, s, name, true, value, ends - now))
			return false;
	sim_node_delete(s->node, name);
	return true;
}

static bool node_fault_of_store(struct world *w, struct server *s, const struct fault *f)
{
	int64_t expires = server_wall(s) / MSEC + f->for_us / MSEC + 1, old;
	struct span value;

	switch (f->kind) {
	case FAULT_NODE_FLUSH:
		s->tainted = true;
		sim_node_flush(s->node);
		server_lost_memory(s);
		return true;
	case FAULT_NODE_EVICT:
		s->tainted = true;
		sim_node_evict(s->node, fault_name(w, f));
		return true;
	case FAULT_NODE_DELETE:
		sim_node_delete(s->node, fault_name(w, f));
		return true;
	case FAULT_NODE_DELETE_ONE:
		return node_delete_one(w, s, f);
	case FAULT_FOREIGN_KEY:
	case FAULT_FOREIGN_HASH:
		if (s->down || sim_node_get(s->node, fault_name(w, f), server_wall(s), &value, &old))
			return false;
		if (f->kind == FAULT_FOREIGN_KEY)
			sim_node_put(s->node, fault_name(w, f), SPAN("0123456789abcdef"), expires);
		else
			sim_node_put_hash(s->node, fault_name(w, f), expires);
		return true;
	default:
		server_step(s, f->x);
		return true;
	}
}

bool node_fault(struct world *w, const struct fault *f)
{
	struct server *s = server_of(w, f);

	switch (f->kind) {
	case FAULT_NODE_PAUSE:
		if (s->down || s->paused_until > w->now)
			return false;
		s->paused_until = w->now + f->for_us;
		return true;
	case FAULT_NODE_BLANK:
	case FAULT_NODE_WHOLE:
	case FAULT_NODE_OLD:
	case FAULT_NODE_SAME_REPLID:
		if (s->down)
			return false;
		server_die(s);
		return true;
	case FAULT_NODE_ERROR:
		sim_node_fail(s->node, error_text[f->x % ERROR_TEXTS]);
		return true;
	case FAULT_NODE_ROLE:
		s->blameless = false;
		sim_node_set_role(s->node, "slave", "0000000000000000000000000000000000000000");
		sim_node_fail(s->node, error_text[2]);
		return true;
	case FAULT_NODE_REPLID:
	case FAULT_NODE_ROLLBACK:
		return !s->down && (f->kind == FAULT_NODE_REPLID ? server_rename(s) : server_roll_back(s, f->b % 2 == 0));
	default:
		return node_fault_of_store(w, s, f);
	}
}

void node_fault_ends(struct world *w, const struct fault *f)
{
	struct server *s = server_of(w, f);
	char replid[41];

	switch (f->kind) {
	case FAULT_NODE_PAUSE:
		s->paused_until = 0;
		server_resume(s);
		break;
	case FAULT_NODE_BLANK:
		server_revive(s, REVIVE_BLANK);
		break;
	case FAULT_NODE_WHOLE:
		server_revive(s, REVIVE_WHOLE);
		break;
	case FAULT_NODE_OLD:
		server_revive(s, REVIVE_OLD);
		break;
	case FAULT_NODE_SAME_REPLID:
		snprintf(replid, sizeof(replid), "%s", sim_node_replid(s->node));
		server_revive(s, f->x ? REVIVE_OLD : REVIVE_WHOLE);
		sim_node_set_replid(s->node, replid);
		break;
	case FAULT_NODE_ERROR:
		sim_node_fail(s->node, NULL);
		break;
	case FAULT_NODE_ROLE:
		s->blameless = false;
		snprintf(replid, sizeof(replid), "%040" PRIx64, stream_next(&s->stream));
		sim_node_set_role(s->node, "master", replid);
		sim_node_fail(s->node, NULL);
		break;
	default:
		break;
	}
}
