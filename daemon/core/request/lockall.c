/* SPDX-License-Identifier: BSD-2-Clause */
/* See requests.h. */
#include "daemon/core/request/requests.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/deadlock/wait_graph.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/resume/resume.h"

#include <inttypes.h>

static bool names_are_allowed(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;

	for (unsigned i = 0; i < q->words; i++) {
		if (q->word[i].n > x->core->conf.limits.name)
			return refuse_name(x, s);
		for (unsigned k = 0; k < i; k++) {
			if (!span_equal(q->word[i], q->word[k]))
				continue;
			send_invalid(x, s, ERROR_ARG, "the names %u and %u are the same: name each lock once", k + 1, i + 1);
			return false;
		}
	}
	return true;
}

static bool group_wants_any(const struct request *q)
{
	return q->verb == VERB_LOCKANY;
}

static const struct claim *name_own(struct request_context *x, const struct session *s, unsigned i)
{
	const struct request *q = &x->request;
	const struct lock *l = lock_find(&x->engine->table, q->word[i]);

	return l ? lock_holder_of(l, s, request_owner(q)) : NULL;
}

static bool count_suits(struct request_context *x, struct session *s, unsigned i)
{
	const struct claim *own = name_own(x, s, i);
	unsigned count = request_count(&x->request), has = own ? own->count : 0;

	if (count > 0 && (count == has || count == has + 1))
		return true;
	send_invalid(x, s, ERROR_ARG, "count=%u, but this owner holds name %u %u times: %s", count, i + 1, has,
	             count == 0   ? "count is from 1 here, and UNLOCK gives a lock back"
	             : count < has ? "UNLOCK lowers the count"
	                           : "this adds one at most");
	return false;
}

/* Checks how many times the owner may hold each name afterwards. LOCKANY: only for the first name that it holds, or for any name if it holds none. */
static bool counts_suit(struct request_context *x, struct session *s)
{
	unsigned words = x->request.words, first = 0;

	if (!request_has(&x->request, FIELD_COUNT))
		return true;
	if (group_wants_any(&x->request)) {
		while (first < words && !name_own(x, s, first))
			first++;
		return count_suits(x, s, first < words ? first : 0);
	}
	for (unsigned i = 0; i < words; i++)
		if (!count_suits(x, s, i))
			return false;
	return true;
}

/* The owner holds everything as many times as count= says, so nothing is granted. */
static bool group_is_had(struct request_context *x, const struct session *s)
{
	const struct request *q = &x->request;
	unsigned n = 0;

	for (unsigned i = 0; i < q->words && request_has(q, FIELD_COUNT); i++) {
		const struct claim *own = name_own(x, s, i);

		n += own && own->count == request_count(q);
	}
	return group_wants_any(q) ? n > 0 : n == q->words;
}

/* What the owner holds already is counted up if it is held in the requested mode. */
static bool own_hold_suits(struct request_context *x, struct session *s, unsigned i)
{
	const struct request *q = &x->request;
	const struct lock *l = lock_find(&x->engine->table, q->word[i]);
	const struct claim *holder = l ? lock_holder_of(l, s, request_owner(q)) : NULL;

	if (holder && l->lease.state == LEASE_ADOPTING) {
		send_error(x, s, q->tag, ERROR_QUORUM,
		           "the daemon was restarted, and fewer than %u of %u stores have confirmed name %u since: ask again in a moment",
		           quorum_of(x->core->conf.nodes), x->core->conf.nodes, i + 1);
		return false;
	}
	if (!holder || holder->shared == request_is_shared(q))
		return mode_is_allowed(x, s, q->word[i]);
	if (holder->shared)
		send_invalid(x, s, ERROR_ARG, "this owner holds name %u shared: UNLOCK it first", i + 1);
	else
		send_invalid(x, s, ERROR_ARG, "this owner holds name %u exclusively: UNLOCK it, or share it by LOCK mode=shared, first", i + 1);
	return false;
}

static bool own_holds_suit(struct request_context *x, struct session *s)
{
	for (unsigned i = 0; i < x->request.words; i++)
		if (!own_hold_suits(x, s, i))
			return false;
	return true;
}

/* Checks that no semaphore of this daemon has one of the names, before any store is asked. Otherwise a LOCKANY would get another name meanwhile. */
static bool names_are_of_locks(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;

	for (unsigned i = 0; i < q->words; i++) {
		const struct lock *l = lock_find(&x->engine->table, q->word[i]);

		if (!l || l->lease.limit == 0 || lock_is_idle(l))
			continue;
		send_error(x, s, q->tag, ERROR_KIND, "name %u is in use by a semaphore: take another name, or ask when nobody has a permit of it", i + 1);
		return false;
	}
	return true;
}

static bool terms_are_allowed(struct request_context *x, struct session *s)
{
	return names_are_allowed(x, s) && ttl_is_allowed(x, s) &&
	       bound_is_kept(x, s, FIELD_DELAY, x->core->conf.max_delay_us, "max_delay") && terms_suit_mode(x, s);
}

/* Returns how many of the names would be new locks. Names that the owner holds, or has lost and asks for again, are not new. */
static unsigned count_new_names(struct request_context *x, const struct session *s, uint64_t *ret_bytes)
{
	const struct request *q = &x->request;
	unsigned n = 0;

	*ret_bytes = 0;
	for (unsigned i = 0; i < q->words; i++) {
		const struct lock *l = lock_find(&x->engine->table, q->word[i]);

		if (l && lock_claim_of(l, s, request_owner(q)))
			continue;
		n++;
		*ret_bytes += q->word[i].n + NAME_BYTES;
	}
	return n;
}

static bool group_is_within_limits(struct request_context *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;
	uint64_t bytes;

	if (patient && !waits_have_room(x, s))
		return false;
	if (!crowd_has_room(x, s))
		return false;
	if (s->held + s->waiting + count_new_names(x, s, &bytes) <= conf->limits.locks)
		return names_have_room(x, s, bytes, request_has(&x->request, FIELD_DELAY));
	send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " locks (limits.locks)", conf->limits.locks);
	return false;
}

static bool words_name(const struct request *q, struct span name)
{
	for (unsigned i = 0; i < q->words; i++)
		if (span_equal(q->word[i], name))
			return true;
	return false;
}

/* After RESUME: the same request. If both have count=, also before RESUME. */
static bool group_is_repeated_by(const struct group *g, const struct request *q)
{
	bool again = g->bid.not_notified || (g->bid.count > 0 && request_has(q, FIELD_COUNT));

	if (!again || g->bid.withdrawn || g->any != group_wants_any(q) || g->shared != request_is_shared(q) || g->parts != q->words)
		return false;
	if (!span_equal(g->bid.owner, request_owner(q)))
		return false;
	for (unsigned i = 0; i < g->parts; i++)
		if (!words_name(q, g->part[i].name))
			return false;
	return true;
}

/* It waits no longer: the client has repeated the request without a wait. */
static void group_gives_up(struct request_context *x, struct group *g)
{
	if (g->bid.not_notified)
		bid_is_ending(&g->bid);
	else
		bid_withdraw(x, &g->bid);
}

/* If both wait, a repeated request gets the old place. Otherwise it replaces the earlier one. The client holds already what was granted meanwhile. */
static bool group_is_repeated(struct request_context *x, struct session *s, bool patient)
{
	struct group *g, *last = NULL;

	GROUPS_FOREACH(g, s) {
		if (!group_is_repeated_by(g, &x->request))
			continue;
		if (g->bid.patient && patient)
			break;
		last = g->bid.not_notified ? g : last;
		group_gives_up(x, g);
	}
	if (last)
		resume_end_groups(x, s);
	if (!g)
		return false;
	if (!g->bid.not_notified)
		send_replaced(x, s, span_of(g->bid.tag));
	group_repeat(x, g);
	return true;
}

static bool group_is_patient(const struct request *q)
{
	return request_has(q, FIELD_WAIT) && q->field[FIELD_WAIT].number > 0;
}

static void serve_group(struct request_context *x, struct session *s)
{
	bool patient = group_is_patient(&x->request);

	if (!terms_are_allowed(x, s))
		return;
	if (s->resumed)
		resume_make_way(x, s);
	if (x->engine->draining && !group_is_had(x, s)) {
		send_draining(x, s, x->request.tag);
		return;
	}
	if (!counts_suit(x, s) || group_is_repeated(x, s, patient) || !names_are_of_locks(x, s) || !own_holds_suit(x, s))
		return;
	if (!group_is_within_limits(x, s, patient) ||
	    (patient && x->request.verb == VERB_LOCKALL && local_circle_is_refused(x, s, x->request.word, x->request.words)))
		return;
	group_new(x, s);
	if (patient)
		deadlock_note(x, s);
}

void serve_LOCKALL(struct request_context *x, struct session *s)
{
	serve_group(x, s);
}

void serve_LOCKANY(struct request_context *x, struct session *s)
{
	serve_group(x, s);
}
