/* SPDX-License-Identifier: BSD-2-Clause */
/* See list.h. */
#include "daemon/core/request/list.h"

#include "daemon/core/job/job_list.h"
#include "daemon/core/job/queue_list.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/judge.h"
#include "daemon/core/member/probe.h"
#include "daemon/core/reply/lists.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"

#include <inttypes.h>

#define ROWS_DEFAULT 1000
#define ROWS_MOST    10000

static bool lists_within_limit(struct request_context *x, struct session *s)
{
	uint64_t most = under_way_most(x->core, LISTS_MOST), n = 0;
	const struct listing *l;

	TAILQ_FOREACH(l, &s->listings, in_session)
		n++;
	if (n < most)
		return peer_within_limit(x, s);
	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a session may have at most %" PRIu64 " requests for lists in flight (limits.waiting, and at most %d)", most, LISTS_MOST);
	return false;
}

static void list_table(struct request_context *x, struct session *s, bool of_sessions, size_t most)
{
	size_t entries = of_sessions ? x->sessions->count + x->sessions->detached_count : x->engine->table.map.count;

	lists_add(x, listing_new(x, s, of_sessions ? &listed_sessions : &listed_locks, most), entries);
}

/* How far its clock is ahead of this host's. */
static int64_t node_clock_us(const struct core *core, const struct member *m)
{
	return m->clock.low + (m->clock.high - m->clock.low) / 2 + core->now.us - core->wall_us;
}

static void list_nodes(struct request_context *x, struct session *s)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		const struct member *m = &x->engine->members.node[i];
		struct trouble trouble = member_trouble(&x->engine->members, m);
		struct reply r;

		row_begin(x, x->request.tag, &r);
		reply_text(&r, "node", span_of(x->core->conf.label[i]));
		if (m->address[0])
			reply_text(&r, "address", span_of(m->address));
		reply_text(&r, "state", span_of(member_state_told(&x->engine->members, m)));
		if (trouble.text[0])
			reply_text(&r, "reason", span_of(trouble.text));
		else if (!x->core->conf.shared)
			reply_text(&r, "reason", SPAN(THIS_HOST_ONLY));
		if (trouble.text[0] && (m->state != MEMBER_QUARANTINED || trouble.defect))
			reply_text(&r, "cause", span_of(defect_table[trouble.defect ? trouble.defect : DEFECT_OTHER].word));
		if (m->state == MEMBER_QUARANTINED)
			reply_ms(&r, "left_ms", instant_diff(m->quarantine.end, x->core->now));
		if (m->rtt_us)
			reply_int(&r, "rtt_us", m->rtt_us);
		if (m->fence_seen)
			reply_int(&r, "fence", m->fence_seen);
		if (m->connected && m->clock.known)
			reply_int(&r, "clock_ms", node_clock_us(x->core, m) / MSEC);
		if (m->connected && m->unsaved)
			reply_text(&r, "saves", SPAN("no"));
		row_end(x, s, &r);
	}
	rows_done(x, s, x->request.tag, x->core->conf.nodes, 0);
}

void serve_LIST(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct span what = q->words > 0 ? q->word[0] : SPAN("locks");
	bool of_sessions = span_equal(what, SPAN("sessions"));
	size_t most = ROWS_DEFAULT;

	if (request_has(q, FIELD_LIMIT)) {
		if (q->field[FIELD_LIMIT].number > ROWS_MOST) {
			tell_mistake(x, s, ERROR_LIMIT, "limit may be at most %d", ROWS_MOST);
			return;
		}
		most = (size_t)q->field[FIELD_LIMIT].number;
	}
	if (span_equal(what, SPAN("nodes")))
		list_nodes(x, s);
	else if (span_equal(what, SPAN("jobs")) && lists_within_limit(x, s))
		job_list_jobs(x, s, most);
	else if (span_equal(what, SPAN("queues")) && lists_within_limit(x, s))
		lists_add(x, listing_new(x, s, &listed_queues, most), SIZE_MAX);
	else if (!of_sessions && !span_equal(what, SPAN("locks")))
		tell_mistake(x, s, ERROR_ARG, "LIST takes locks, sessions, nodes, queues or jobs");
	else if (lists_within_limit(x, s))
		list_table(x, s, of_sessions, most);
}
