/* SPDX-License-Identifier: BSD-2-Clause */
/* See lease.h. */
#include "daemon/core/lock/lease.h"

#include "daemon/base/mem.h"

#include <string.h>

/* The table of moves. */

const struct state_row contender_table[CONTENDER_N] = {
#define CONTENDER_STATE(id, word, what) [CONTENDER_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const struct state_row lease_table[LEASE_N] = {
#define LEASE_STATE(id, word, what) [LEASE_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const struct state_row cause_table[CAUSE_N] = {
#define CAUSE(id, word, what) [CAUSE_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const bool contender_moves[CONTENDER_N][CONTENDER_N][CAUSES_MAX] = {
#define CONTENDER_MOVE(from, to, why) [CONTENDER_##from][CONTENDER_##to][CAUSE_##why] = true,
#include "daemon/core/lock/move.def"
};

const bool lease_moves[LEASE_N][LEASE_N][CAUSES_MAX] = {
#define LEASE_MOVE(from, to, why) [LEASE_##from][LEASE_##to][CAUSE_##why] = true,
#include "daemon/core/lock/move.def"
};

void contender_line_up(struct contender *k, struct claim *c)
{
	struct claim *before = TAILQ_LAST(&k->waiters, claims);

	for (unsigned passed = 0; before && claim_comes_before(c, before) && passed < PASSED_MOST / (1U + c->asking->others); passed++)
		before = TAILQ_PREV(before, claims, in_lock);
	if (before)
		TAILQ_INSERT_AFTER(&k->waiters, before, c, in_lock);
	else
		TAILQ_INSERT_HEAD(&k->waiters, c, in_lock);
}

/* The host of the daemon whose id the text begins with: "<id>.<host>:…". */
static void host_note(struct span text, char host[HOST_MAX])
{
	const char *dot = memchr(text.p, '.', text.n);
	const char *colon = memchr(text.p, ':', text.n);
	size_t n = dot && colon && dot < colon ? (size_t)(colon - dot - 1) : 0;

	n = n < HOST_MAX ? n : HOST_MAX - 1;
	if (n > 0)
		memcpy(host, dot + 1, n);
	host[n] = '\0';
}

/* The daemon to ask who holds the name: "<id>:<number>:…". A mark has more after its number, see value.h, and no holder to report. */
static void daemon_note(struct span holder, struct elsewhere *elsewhere)
{
	const char *colon = memchr(holder.p, ':', holder.n);
	size_t n = colon ? (size_t)(colon - holder.p) : 0, i = n + 1;
	int64_t number = 0;

	elsewhere->number = 0;
	if (n == 0 || n >= DAEMON_ID_MAX)
		return;
	for (; i < holder.n && i < n + 19 && holder.p[i] >= '0' && holder.p[i] <= '9'; i++)
		number = number * 10 + (holder.p[i] - '0');
	if (i == holder.n || holder.p[i] != ':')
		return;
	memcpy(elsewhere->daemon, holder.p, n);
	elsewhere->daemon[n] = '\0';
	elsewhere->number = number;
}

void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a)
{
	struct span holder = answer_holder(a);
	bool own = span_starts(holder, span_of(core->daemon_id)); /* left without a holder, or from a former run */

	elsewhere->foreign = holder.n == 0 && core->conf.shared;
	elsewhere->shared = a->code == 'S';
	elsewhere->held_us = value_held_us(holder, a->server_us);
	elsewhere->kept = value_is_kept(holder);
	elsewhere->host[0] = '\0';
	elsewhere->number = 0;
	if (span_starts(holder, SPAN("!")))
		return; /* broken: nobody holds it, and nobody gets it yet */
	if (!core->conf.shared || (own && elsewhere->kept))
		return;
	host_note(holder, elsewhere->host);
	if (!elsewhere->foreign && !elsewhere->kept && !own)
		daemon_note(holder, elsewhere);
}

void ticket_seen_note(const struct core *core, struct ticket_seen *seen, const struct answer *a)
{
	struct span holder = answer_holder(a), text;
	int64_t us = 0;
	size_t i;

	if (a->found.n <= holder.n)
		return;
	text = (struct span){holder.p + holder.n + 1, a->found.n - holder.n - 1};
	for (i = 0; i < text.n && i < 16 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
		us = us * 10 + (text.p[i] - '0');
	if (i == text.n || text.p[i] != ':' || us == 0 || (seen->us && seen->us <= us))
		return;
	text = (struct span){text.p + i + 1, text.n - i - 1};
	seen->us = us;
	seen->own = span_starts(text, span_of(core->daemon_id));
	host_note(text, seen->host);
}

void placed_note_answer(struct placed *p, const struct answer *a)
{
	nodeset_remove(&p->unanswered, a->node);
	if (a->class != ANSWER_UNKNOWN)
		return;
	nodeset_add(&p->unknown, a->node);
	nodeset_remove(&p->sure, a->node);
}

void lease_promise(struct lease *x, int64_t ttl_us, struct instant until)
{
	x->promised.ttl_us = ttl_us > x->promised.ttl_us ? ttl_us : x->promised.ttl_us;
	x->promised.until = instant_max(x->promised.until, until);
}

bool lease_is_gone(const struct lease *x, unsigned nodes)
{
	return nodeset_count(x->renewal->gone) > nodes - quorum_of(nodes);
}

struct instant lease_loss_due(const struct lease *x, unsigned nodes)
{
	return instant_add(lease_deadline(x, nodes), -loss_lead_us(x->ttl_us));
}

struct instant lease_others_until(const struct lease *x, unsigned nodes, unsigned node)
{
	struct votes others;

	memcpy(others.until, x->votes, nodes * sizeof(x->votes[0]));
	others.until[node] = INSTANT_PAST;
	return votes_deadline(others.until, nodes);
}

int64_t lease_valid_us(const struct lease *x, unsigned nodes, struct instant now)
{
	struct instant end = lease_deadline(x, nodes);

	if (x->renew_ttl_us < x->promised.ttl_us)
		end = instant_min(end, vote_until(now, x->renew_ttl_us));
	return instant_diff(end, now);
}

struct adoption *adoption_new(struct span value, unsigned nodes)
{
	struct adoption *h = mem_alloc(sizeof(*h) + value.n);

	h->left = nodeset_all(nodes);
	h->n = value.n;
	memcpy(h->value, value.p, value.n);
	return h;
}

bool adoption_is_of(const struct lease *x, struct span value)
{
	const struct adoption *h = x->renewal->adoption;

	return span_equal((struct span){h->value, h->n}, value);
}

/* Only for a lease without open questions: for all others the next process asks the stores. */
static struct span adoption_votes(struct core *core, const struct lease *x)
{
	if (x->state != LEASE_HELD || x->shared || x->at_risk || x->broken || x->renewal->doubted)
		return (struct span){0};
	return (struct span){(const char *)x->votes, core->conf.nodes * sizeof(x->votes[0])};
}

/* Includes a store whose answer to a renewal nobody will read: it may have put the key back, or may still do so. */
static struct nodeset adoption_gaps(const struct lease *x)
{
	const struct placed *p = &x->placed;

	return nodeset_or(x->renewal->gaps, nodeset_or(p->unanswered, nodeset_without(p->unknown, p->sure)));
}

struct prior_lease adoption_record(struct core *core, const struct lease *x)
{
	const struct adoption *h = x->renewal->adoption;
	struct prior_lease left = {.name = name_text(x->name), .ttl_us = x->promised.ttl_us,
	                           .deadline = instant_max(lease_deadline(x, core->conf.nodes), x->promised.until)};

	if (x->auto_renew)
		left.deadline = instant_max(left.deadline, x->relied_at_least);
	left.end = h && h->deadline.us != INSTANT_NEVER.us ? h->deadline : lease_deadline(x, core->conf.nodes);
	left.votes = adoption_votes(core, x);
	left.gaps = adoption_gaps(x);
	left.value = h ? (struct span){h->value, h->n} : value_in_text(core, &x->value);
	return left;
}

void adoption_denied(struct lease *x, unsigned node, bool occupied)
{
	nodeset_remove(&x->renewal->adoption->left, node);
	if (occupied)
		nodeset_add(&x->renewal->adoption->occupied, node);
}

void adoption_over(struct lease *x)
{
	if (!x->renewal->adoption)
		return;
	mem_free(x->renewal->adoption);
	x->renewal->adoption = NULL;
}

bool adoption_is_denied(const struct lease *x, unsigned nodes)
{
	const struct adoption *h = x->renewal->adoption;

	return nodeset_count(nodeset_or(h->left, h->occupied)) < quorum_of(nodes);
}

struct instant adoption_end(const struct lease *x)
{
	struct instant end = instant_min(x->renewal->adoption->hopeless, x->renewal->adoption->deadline);

	return x->renewal->adoption->deadline.us == INSTANT_NEVER.us ? end : instant_add(end, -loss_lead_us(x->ttl_us));
}

int64_t adoption_rest_us(const struct lease *x, struct instant now)
{
	int64_t left = instant_diff(x->renewal->adoption->deadline, now) + DRIFT_SLACK_US;

	return left + drift_us(left + drift_us(left));
}
