/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server does with a command, and how it dies and comes back. */
#include "daemon/core/member/members.h"
#include "tests/sim/world/world.h"

#include <stdlib.h>

#define EPOCH_US INT64_C(1700000000000000)
#define NUDGE_ASKED_US (2 * SEC) /* how long ago a daemon may have asked a server for its time */

static void server_identity(struct server *s, char *ret_run_id)
{
	uint64_t id[2];

	id[0] = stream_next(&s->stream);
	id[1] = stream_next(&s->stream);
	snprintf(ret_run_id, 41, "%08x%016llx%016llx", s->index, (unsigned long long)id[0], (unsigned long long)id[1]);
	s->runs++;
}

static void server_replid(struct server *s, char *ret_replid)
{
	snprintf(ret_replid, 41, "%040llx", (unsigned long long)stream_next(&s->stream));
}

/* At most, unless clocks were set back: the healed world has quarantines and leases to wait for, see stages.c and finale.c. */
static int64_t world_lasts_us(const struct plan *p)
{
	int64_t healed = 2 * settle_us(p) + plan_quarantine_us(p) + 2 * p->max_lease_us + 100 * SEC;

	return p->length_us + (healed > 200 * SEC ? healed : 200 * SEC);
}

void server_init(struct server *s, struct world *w, unsigned index)
{
	const struct plan *p = w->plan;
	struct sim_node_conf conf = {.key_prefix = "lock:",
	                             .skew_us = SKEW_US,
	                             .tolerance_us = 2 * clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us)};
	struct stream hosts;
	int64_t most = 2500 * clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) / (world_lasts_us(p) / 100);
	char run_id[41];

	s->world = w;
	s->index = index;
	s->lost_at = -1;
	s->marked_by = -1;
	TAILQ_INIT(&s->backlog);
	stream_init(&s->stream, (uint64_t)p->seed, DRAW_NODE, index);
	stream_init(&hosts, (uint64_t)p->seed, DRAW_HOSTS, 100 + index);
	s->host.ppm = stream_either(&hosts, p->drift_ppm);
	/* A server's clock is disciplined: it drifts no further than the tolerance while the world lasts. */
	if (p->nodes > 1 && most < p->drift_ppm)
		s->host.ppm = s->host.ppm * most / p->drift_ppm;
	s->host.base_us = stream_range(&hosts, SEC, 1000000 * SEC);
	s->host.offset_us = EPOCH_US - s->host.base_us + stream_range(&hosts, -p->node_offset_us, p->node_offset_us);
	s->right_us = s->host.offset_us;
	server_identity(s, run_id);
	conf.run_id = run_id;
	s->node = sim_node_new(&conf);
	sim_node_publish_to(s->node, subscriber_published, s);
	keys_watch(s);
}

void server_step(struct server *s, int64_t us)
{
	const struct plan *p = s->world->plan;
	int64_t most = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) + 2 * p->node_offset_us + p->daemon_offset_us;
	bool was_off = s->host.offset_us - s->right_us > most;

	if (us < 0)
		metered_settle(s);
	s->tainted |= us != 0;
	s->host.offset_us += us;
	s->stepped_us += us < 0 ? -us : 0;
	s->ahead_us += us > 0 ? us : 0;
	if ((us > 0 || was_off) && s->host.offset_us - s->right_us <= most)
		s->ahead_at = s->world->now;
	if (us > 0 && us < JUMP_SLACK_US + drift_us(NUDGE_ASKED_US) + 4 * (p->latency_us + p->jitter_us))
		s->nudged_at = s->world->now;
	if (us < 0)
		checker_sets_back(s->world, s->index);
}

void server_release(struct server *s)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(&s->backlog))) {
		TAILQ_REMOVE(&s->backlog, f, in_backlog);
		flight_drop(f);
	}
	metered_release(s);
	sim_node_free(s->node);
}

int64_t server_wall(const struct server *s)
{
	if (s->world->plan->memory)
		return sim_node_wall(s->node, daemon_boot(&s->world->daemon[0]));
	return host_wall(&s->host, s->world->now);
}

/* --- commands -------------------------------------------------------------------------------------------------------- */

static bool is_partial(const struct flight *f)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < f->count; i++)
		refused += f->answer[i].class == ANSWER_REFUSED;
	return refused > 0 && refused < f->count;
}

void server_carry_out(struct server *s, struct flight *f)
{
	struct span *text;

	keys_before(s, f);
	sim_node_call(s->node, f->call, f->count, server_wall(s), f->answer);
	for (unsigned i = 0; i < f->count; i++) {
		struct answer *a = &f->answer[i];

		text = &a->found;
		text->p = arena_copy(&f->arena, text->p ? text->p : "", text->n);
		text = &a->text;
		text->p = arena_copy(&f->arena, text->p ? text->p : "", text->n);
		if (a->probe)
			a->probe = probe_copy(&f->arena, a->probe);
		world_note(s->world, (uint64_t)a->code, (uint64_t)a->fence,
			   "n%u ran %s %.*s for d%u.%llu: %c fence=%lld pttl=%lld %.*s", s->index, call_word(f->call[i].kind),
			   (int)f->call[i].name.n, f->call[i].name.p, f->daemon->index, (unsigned long long)f->run,
			   a->code ? a->code : '-', (long long)a->fence, (long long)a->pttl_ms, (int)a->text.n, a->text.p);
	}
	s->world->tally.partial += is_partial(f);
	if (s->world->plan->memory)
		kill_point();
	if (s->world->plan->memory && s->world->daemon[0].store->killed)
		keys_torn(s);
	else
		keys_after(s, f);
}

static void server_run(struct server *s, struct flight *f)
{
	server_carry_out(s, f);
	if (s->world->plan->service_us)
		world_at(s->world, &s->idle, AT_IDLE, s->world->now + s->world->plan->service_us * f->count);
	flight_answered(f, s->world->plan->service_us * f->count);
}

/* It stands still, or runs another command. */
static bool server_is_busy(const struct server *s)
{
	return s->paused_until > s->world->now || timer_is_set(&s->idle);
}

void server_receive(struct server *s, struct flight *f)
{
	if (s->down || f->dialled != s->runs)
		flight_lose(f);
	else if (server_is_busy(s))
		TAILQ_INSERT_TAIL(&s->backlog, f, in_backlog);
	else
		server_run(s, f);
}

void server_resume(struct server *s)
{
	struct flight *f;

	while (!s->down && !server_is_busy(s) && (f = TAILQ_FIRST(&s->backlog))) {
		TAILQ_REMOVE(&s->backlog, f, in_backlog);
		server_run(s, f);
	}
}

/* --- dying and coming back --------------------------------------------------------------------------------------------- */

void server_die(struct server *s)
{
	struct world *w = s->world;
	struct flight *f;

	s->down = true;
	s->blameless = false;
	s->paused_until = 0;
	heap_cancel(&w->heap, &s->idle);
	while ((f = TAILQ_FIRST(&s->backlog))) {
		TAILQ_REMOVE(&s->backlog, f, in_backlog);
		flight_lose(f);
	}
	for (unsigned i = 0; i < w->plan->daemons; i++)
		link_break(&w->daemon[i].link[s->index]);
}

void server_lost_memory(struct server *s)
{
	s->lost_at = s->world->now;
	s->blameless = false;
	metered_lost(s);
	chores_lost(s);
	s->fence = sim_node_fence(s->node);
	s->lease_lost |= s->marked_by == 0;
	s->marked_by = -1;
	s->knows_set = false;
	memset(s->stray, true, sizeof(s->stray));
	places_lost(s);
}

void server_revive(struct server *s, enum revival how)
{
	char run_id[41];

	server_identity(s, run_id);
	if (how == REVIVE_BLANK)
		sim_node_restart_blank(s->node, run_id);
	else if (how == REVIVE_WHOLE)
		sim_node_restart_whole(s->node, run_id, server_wall(s));
	else
		sim_node_restart_old(s->node, run_id, server_wall(s));
	if (how != REVIVE_WHOLE)
		server_lost_memory(s);
	s->down = false;
}

bool server_rename(struct server *s)
{
	char replid[41];

	if (!sim_node_is_well(s->node))
		return false;
	server_replid(s, replid);
	sim_node_set_replid(s->node, replid);
	s->blameless &= sim_node_has_own_data(s->node);
	return true;
}

bool server_roll_back(struct server *s, bool breaks)
{
	if (!sim_node_roll_back(s->node, server_wall(s)))
		return false;
	s->tainted = true;
	server_lost_memory(s);
	for (unsigned i = 0; breaks && i < s->world->plan->daemons; i++)
		link_break(&s->world->daemon[i].link[s->index]);
	return true;
}
