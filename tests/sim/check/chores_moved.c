/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work where the set of servers changes: what daemons of each set ask is asked at the homes of that set, what is moved keeps its place and its
 * attempts, is stored at its home before it is done where it was, and is moved once (S32); and once all is well, nothing that is due stays elsewhere (L17).
 */
#include "daemon/base/netstring.h"
#include "tests/sim/world/world.h"

#include <stdio.h>

#define PLACE_US (500 * MSEC) /* by so much the place of a chore may differ, as far as daemons know the clocks of the servers */
#define PIECE    60           /* chores that a server tells in one piece, or a few more */

static uint64_t weight(unsigned server, struct span queue)
{
	static const uint64_t fixed[2] = {0, 0};
	const uint64_t key[2] = {siphash(fixed, (const char[]){'n', (char)('0' + server)}, 2), 2};

	return siphash(key, queue.p, queue.n);
}

unsigned chore_home(const struct world *w, int64_t chore, bool strange)
{
	uint16_t servers = servers_of(w->plan, strange);
	unsigned home = 0;
	uint64_t most = 0;
	char queue[32];

	snprintf(queue, sizeof(queue), "w%lld", (long long)chore_queue(w->plan, chore));
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (servers >> i & 1 && weight(i, span_of(queue)) > most) {
			home = i;
			most = weight(i, span_of(queue));
		}
	return home;
}

bool chore_is_dead(const struct server *s, int64_t number)
{
	long long due, failed, most = (long long)s->world->daemon[0].conf.limits.attempts;
	char key[64], field[32], value[8], text[64];
	struct span row;

	snprintf(key, sizeof(key), "j:w%lld", (long long)chore_queue(s->world->plan, number));
	snprintf(field, sizeof(field), "hc%lld", (long long)number);
	if (!sim_node_field(s->node, span_of(key), span_of(field), &row))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)row.n, row.p);
	return sscanf(text, "%lld %lld %2s", &due, &failed, value) == 3 && strcmp(value, "-") == 0 && failed >= most;
}

/* --- moves ----------------------------------------------------------------------------------------------------------- */

/* The clock of the server shows that moment at this true time. */
static int64_t true_of(const struct server *s, int64_t ms)
{
	return ms * MSEC - (server_wall(s) - s->world->now);
}

static bool clocks_were_set(const struct world *w)
{
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (w->server[i].ahead_us || w->server[i].stepped_us)
			return true;
	return false;
}

/* Nothing has happened in the healed world that could have kept a daemon from ending what it began then. */
static bool healed_before(const struct world *w, int64_t at)
{
	return at > w->plan->length_us + 2 * SEC + w->plan->timeout_us && w->stage < STAGE_FINALE && !w->flaps;
}

void chore_move_begun(struct server *s, int64_t number, struct span value, int64_t due_ms)
{
	struct world *w = s->world;
	struct chore_move *m = &w->checker.chore[number].move;

	if (m->stored_at && m->from == s->index && healed_before(w, m->stored_at) && !w->checker.chore[number].again)
		checker_fail(w, INVARIANT_S32, -1, "c%lld is moved from node %u again, though its home has stored it at %lld us", (long long)number,
		             s->index, (long long)m->stored_at);
	*m = (struct chore_move){.value = chore_hash(value), .from = s->index, .due_at = true_of(s, due_ms)};
	w->tally.moved++;
}

void chore_move_stored(const struct server *s, int64_t number, uint64_t value, int64_t due_ms)
{
	struct world *w = s->world;
	struct chore_move *m = &w->checker.chore[number].move;
	int64_t off;

	if (m->value != value)
		return;
	off = true_of(s, due_ms) - m->due_at;
	if (!m->stored_at && (off > PLACE_US || off < -PLACE_US) && !clocks_were_set(w))
		checker_fail(w, INVARIANT_S32, -1, "c%lld was due at %lld us at node %u, and stands %lld us later at node %u", (long long)number,
		             (long long)m->due_at, m->from, (long long)off, s->index);
	m->stored_at = w->now;
}

bool chore_move_ended(const struct server *s, int64_t number, struct span value)
{
	struct world *w = s->world;
	struct chore *h = &w->checker.chore[number];

	if (h->move.value != chore_hash(value) || h->move.from != s->index)
		return false;
	if (!h->move.stored_at && !h->twin)
		checker_fail(w, INVARIANT_S32, -1, "c%lld is done at node %u because it was moved, and its home has not stored it", (long long)number,
		             s->index);
	h->move.stored_at = 0;
	return true;
}

void chore_given_back(const struct server *s, struct span value)
{
	struct world *w = s->world;

	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore_move *m = &w->checker.chore[i].move;

		if (m->value == chore_hash(value) && m->from == s->index && m->stored_at)
			checker_fail(w, INVARIANT_S32, -1, "c%lld is due again at node %u, though its home has stored it at %lld us", (long long)i, s->index,
			             (long long)m->stored_at);
	}
}

/* --- what clients ask ------------------------------------------------------------------------------------------------ */

static bool is_dead_at_any(const struct sim_daemon *d, int64_t number)
{
	const struct world *w = d->world;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (daemon_has_server(d, i) && chore_is_dead(&w->server[i], number))
			return true;
	return false;
}

void chores_begun(struct request_sim *q)
{
	struct world *w = q->conn->world;

	if (q->ask != ASK_CHORE)
		return;
	if (q->chore == CHORE_DONE)
		w->checker.chore[q->name].asked_done = true;
	if (q->chore == CHORE_REVIVE)
		q->was_dead = is_dead_at_any(q->conn->daemon, q->name);
}

void chores_row(struct request_sim *q, struct span line)
{
	int64_t chore = chore_number(line_field(line, "job"));

	if (q->ask == ASK_CHORE && q->chore == CHORE_JOBS && chore >= 0)
		q->chores[chore / 8] |= (unsigned char)(1u << chore % 8);
}

/* What was at servers of that daemon all the time. */
void chores_listed(const struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;
	const struct sim_daemon *d = q->conn->daemon;

	if (line_int(line, "after") >= 0 || line_int(line, "missing") > 0 || line_int(line, "n") > PIECE)
		return;
	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore *h = &w->checker.chore[i];

		if (chore_queue(w->plan, i) != chore_queue(w->plan, q->name) || !(h->at & d->servers) || h->changed_at >= q->begun_at || h->missing || h->again)
			continue;
		if (!(q->chores[i / 8] >> i % 8 & 1))
			checker_fail(w, INVARIANT_S32, -1, "LIST jobs of daemon %u, begun at %lld us, leaves out c%lld", d->index, (long long)q->begun_at,
			             (long long)i);
	}
}

void chore_not_found(const struct request_sim *q)
{
	struct world *w = q->conn->world;
	const struct chore *h = &w->checker.chore[q->name];

	if (q->was_dead && h->revived_at < q->begun_at && h->changed_at < q->begun_at && !h->again && is_dead_at_any(q->conn->daemon, q->name))
		checker_fail(w, INVARIANT_S32, -1, "c%lld: RETRY is told NOTFOUND, and it has failed for good", (long long)q->name);
}

/* --- in the end ------------------------------------------------------------------------------------------------------ */

/* Some daemon of the next generation was asked about queues in the healed world, and has run since. */
static bool somebody_moves(const struct world *w)
{
	int64_t healed = w->plan->length_us + settle_us(w->plan);

	for (unsigned i = 0; i < w->plan->daemons; i++)
		if (w->daemon[i].strange && w->daemon[i].state == DAEMON_RUNNING && w->daemon[i].started_at < healed && w->daemon[i].looked_at > healed)
			return true;
	return false;
}

void check_chores_astray(struct world *w)
{
	uint16_t servers = servers_of(w->plan, true);

	if (!plan_moves_chores(w->plan) || !somebody_moves(w))
		return;
	for (int64_t i = 0; i < w->checker.chores; i++) {
		const struct chore *h = &w->checker.chore[i];
		uint16_t astray = h->at & servers & (uint16_t)~(1u << chore_home(w, i, true));

		for (unsigned k = 0; k < w->plan->nodes; k++)
			if (astray >> k & 1 && chore_is_there(&w->server[k], i) && !chore_is_dead(&w->server[k], i))
				checker_fail(w, INVARIANT_L17, -1, "c%lld is still at node %u, which is not its home", (long long)i, k);
	}
}
