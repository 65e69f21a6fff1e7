/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests that change nothing: LIST, HELP and STATS; all figures, one by one. */
#include "daemon/core/request/requests.h"

#include "daemon/core/job/job.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/members.h"
#include "daemon/core/member/membership.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/send.h"
#include "proto/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

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
	send_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a session may have at most %" PRIu64 " requests for lists in flight (limits.waiting, and at most %d)", most, LISTS_MOST);
	return false;
}

static void list_table(struct request_context *x, struct session *s, bool of_sessions, size_t most)
{
	size_t entries = of_sessions ? x->sessions->count + x->sessions->detached_count : x->engine->table.map.count;

	lists_add(x, listing_new(x, s, of_sessions ? &listed_sessions : &listed_locks, most), entries);
}

/* Returns how far its clock is ahead of the clock of this host. */
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
		reply_text(&r, "state", span_of(member_state_reported(&x->engine->members, m)));
		if (trouble.text[0])
			reply_text(&r, "reason", span_of(trouble.text));
		else if (!x->core->conf.shared)
			reply_text(&r, "reason", SPAN(THIS_HOST_ONLY));
		if (trouble.defect)
			reply_text(&r, "cause", span_of(defect_table[trouble.defect].word));
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
			send_invalid(x, s, ERROR_LIMIT, "limit may be at most %d", ROWS_MOST);
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
		send_invalid(x, s, ERROR_ARG, "LIST takes locks, sessions, nodes, queues or jobs");
	else if (lists_within_limit(x, s))
		list_table(x, s, of_sessions, most);
}

#define WORD_ROOM 32

static int64_t failure_rate(const struct metrics *m)
{
	int64_t all = metrics_answered(m);

	return all > 0 ? m->value[METRIC_FAILURES] * 1000000 / all : 0;
}

/* Whether a request can have this result. Only requests that may wait get BUSY and TIMEOUT, and RATE may get BUSY, too. */
static bool result_is_possible(enum verb verb, enum result result)
{
	bool waits;

	if (verb == VERB_OTHER)
		return result == RESULT_ERROR;
	waits = command_table[verb].fields & (UINT64_C(1) << FIELD_WAIT);
	return result == RESULT_OK || result == RESULT_ERROR || waits || (result == RESULT_BUSY && verb == VERB_RATE);
}

/* Samples for each command, in small letters, and for each result that it can have. */
static void report_requests(const struct metrics *m, const struct sampler *to)
{
	char word[WORD_ROOM];

	for (enum verb verb = 0; verb <= VERB_OTHER; verb++) {
		const char *from = verb == VERB_OTHER ? "other" : command_table[verb].word;
		size_t n = strlen(from) < sizeof(word) ? strlen(from) : sizeof(word) - 1;

		for (size_t i = 0; i < n; i++)
			word[i] = (char)tolower((unsigned char)from[i]);
		word[n] = '\0';
		for (enum result result = 0; result < RESULT_N; result++)
			if (result_is_possible(verb, result))
				sampler_report(to, METRIC_REQUESTS, (struct sample_label){"command", word},
				               (struct sample_label){"result", result_word[result]},
				               m->answered[verb][result]);
	}
}

static void report_waits(const struct metrics *m, const struct sampler *to)
{
	for (enum result i = 0; i < RESULT_N; i++)
		sampler_report_histogram(to, METRIC_WAIT_TIMES, "result", result_word[i], &m->wait[i],
		                       i == RESULT_OK ? m->value[METRIC_WAIT_TOTAL] : m->wait_us[i]);
}

_Static_assert(LOSS_N <= METRIC_LOSSES_MOST, "one figure for each");

static void report_losses(const struct metrics *m, const struct sampler *to)
{
	for (enum loss i = 0; i < LOSS_N; i++)
		sampler_report_one(to, METRIC_LEASES_LOST, "reason", loss_word(i), m->lost[i]);
}

static void report_name_groups(const struct core *c, enum metric which, const struct sampler *to)
{
	for (unsigned i = 0; i < name_groups_count(c->name_groups); i++) {
		const struct name_group *g = name_groups_at(c->name_groups, i);

		if (which == METRIC_GROUP_LOSSES)
			sampler_report_one(to, which, "group", g->label, g->lost);
		else if (which == METRIC_GROUP_WAIT_TIMES)
			sampler_report_histogram(to, which, "group", g->label, &g->wait, g->wait_us);
		else if (which == METRIC_GROUP_HOLD_TIMES)
			sampler_report_histogram(to, which, "group", g->label, &g->hold, g->hold_us);
		else
			for (enum result result = 0; result < RESULT_N; result++)
				sampler_report(to, which, (struct sample_label){"group", g->label}, (struct sample_label){"result", result_word[result]},
				             g->answered[result]);
	}
}

static void report_stores(const struct request_context *x, enum metric which, const struct sampler *to)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		const struct member *m = &x->engine->members.node[i];
		const char *name = core_calls(x->core, i);
		struct trouble trouble = member_trouble(&x->engine->members, m);

		if (which == METRIC_REDIS_TROUBLE && trouble.defect)
			sampler_report(to, which, (struct sample_label){"server", name}, (struct sample_label){"cause", defect_table[trouble.defect].word}, 1);
		else if (which == METRIC_REDIS_TROUBLE)
			continue;
		else if (which == METRIC_REDIS_UP)
			sampler_report_one(to, which, "server", name, member_serves(&x->engine->members, m));
		else
			sampler_report_histogram(to, which, "server", name, &m->trips, m->trips_us);
	}
}

static void report_family(const struct request_context *x, enum metric which, const struct sampler *to)
{
	const struct metrics *m = &x->core->metrics;

	switch (which) {
	case METRIC_REQUESTS:
		report_requests(m, to);
		break;
	case METRIC_LEASES_LOST:
		report_losses(m, to);
		break;
	case METRIC_BUILD_INFO:
		sampler_report(to, which, (struct sample_label){"version", REDLOCKD_VERSION}, (struct sample_label){"store", x->core->conf.store}, 1);
		break;
	case METRIC_REDIS_UP:
	case METRIC_REDIS_TROUBLE:
	case METRIC_ROUND_TRIPS:
		report_stores(x, which, to);
		break;
	case METRIC_GROUP_REQUESTS:
	case METRIC_GROUP_LOSSES:
	case METRIC_GROUP_WAIT_TIMES:
	case METRIC_GROUP_HOLD_TIMES:
		report_name_groups(x->core, which, to);
		break;
	case METRIC_WAIT_TIMES:
		report_waits(m, to);
		break;
	case METRIC_HOLD_TIMES:
		sampler_report_histogram(to, which, NULL, NULL, &m->hold, m->value[METRIC_HOLD_TOTAL]);
		break;
	default: /* its cells follow */
		break;
	}
}

static int64_t value_now(const struct request_context *x, enum metric which)
{
	const struct metrics *m = &x->core->metrics;

	switch (which) {
	case METRIC_NAMES:
		return (int64_t)x->engine->table.map.count;
	case METRIC_TIMERS:
		return (int64_t)x->core->timers.count;
	case METRIC_FAILURE_RATE:
		return failure_rate(m);
	case METRIC_RENEWALS_MISSED_ALL:
		return m->value[METRIC_RENEWALS_MISSED];
	case METRIC_NODES_JOINED:
		return members_voting(&x->engine->members);
	case METRIC_QUORUM_AVAILABLE:
		return members_serving(&x->engine->members) >= quorum_of(x->core->conf.nodes);
	case METRIC_CLOCK_APART:
		return x->engine->members.host_apart;
	default:
		return m->value[which];
	}
}

void tally(const struct request_context *x, const struct sampler *to)
{
	const struct outer *outer = x->core->conf.outer;
	enum metric family = 0;

	for (enum metric i = 0; i < METRIC_N; i++)
		switch (metric_table[i].source) {
		case METRIC_PLAIN:
			sampler_report_plain(to, i, value_now(x, i));
			break;
		case METRIC_FAMILY:
			family = i;
			report_family(x, i, to);
			break;
		case METRIC_CELL:
			sampler_report_one(to, family, metric_table[family].labels, metric_table[i].name, value_now(x, i));
			break;
		case METRIC_OUTER:
			if (outer)
				outer->report(outer->context, i, to);
			break;
		}
}

static void row_help(struct request_context *x, struct session *s, enum verb verb)
{
	char usage[512];
	struct reply r;
	size_t n = command_usage(verb, usage, sizeof(usage));

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "verb", span_of(command_table[verb].word));
	reply_text(&r, "usage", (struct span){usage, n});
	reply_text(&r, "help", span_of(command_table[verb].help));
	row_end(x, s, &r);
}

static void help_for_programs(struct request_context *x, struct session *s)
{
	for (enum verb verb = 0; verb < VERB_N; verb++)
		row_help(x, s, verb);
	rows_done(x, s, x->request.tag, VERB_N, -1);
}

/* verb: VERB_N for all requests. */
static void help_for_people(struct request_context *x, struct session *s, enum verb verb)
{
	char line[512];
	struct reply r;
	unsigned i = 0;
	size_t n;

	for (; (n = help_line(verb, i, line, sizeof(line))) > 0; i++) {
		row_begin(x, x->request.tag, &r);
		reply_put_line(&r, (struct span){line, n});
		row_end(x, s, &r);
	}
	rows_done(x, s, x->request.tag, i, -1);
}

void serve_HELP(struct request_context *x, struct session *s)
{
	struct span what = x->request.words > 0 ? x->request.word[0] : SPAN("");
	enum verb verb = command_find(what);

	if (word_is(what, "all"))
		help_for_programs(x, s);
	else if (verb == VERB_N && what.n > 0)
		send_error(x, s, x->request.tag, ERROR_NOTFOUND, "no such request: HELP lists them");
	else
		help_for_people(x, s, verb);
}

/* The state while STATS is being answered. */
struct stats_reply {
	struct request_context *x;
	struct session *session;
	size_t bytes;
	uint64_t sent, left;
};

/* Rows end where they get long. The last ones of the table, the buckets of histograms, are left out then. */
static void row_stats(void *context, const struct sample *sample)
{
	struct stats_reply *t = context;
	char name[SAMPLE_NAME], value[SAMPLE_TEXT];
	struct reply r;

	if (rows_are_long(t->x, t->bytes)) {
		t->left++;
		return;
	}
	sample_text(sample, value);
	row_begin(t->x, t->x->request.tag, &r);
	reply_text(&r, "metric", (struct span){name, sample_name(sample, name)});
	reply_text(&r, "value", span_of(value));
	for (unsigned i = 0; i < sample->labels; i++)
		reply_text(&r, sample->label[i].name, span_of(sample->label[i].value));
	t->bytes += (size_t)(r.at - r.start) + 1;
	row_end(t->x, t->session, &r);
	t->sent++;
}

void serve_STATS(struct request_context *x, struct session *s)
{
	struct stats_reply t = {.x = x, .session = s};
	bool all = x->request.words > 0;

	if (all && !word_is(x->request.word[0], "all")) {
		send_invalid(x, s, ERROR_ARG, "STATS takes all, or nothing");
		return;
	}
	tally(x, &(struct sampler){&t, row_stats, all});
	rows_done(x, s, x->request.tag, t.sent, t.left > 0 ? (int64_t)t.left : -1);
}
