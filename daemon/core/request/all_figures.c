/* SPDX-License-Identifier: BSD-2-Clause */
/* See all_figures.h. */
#include "daemon/core/request/all_figures.h"

#include "daemon/core/member/health.h"
#include "daemon/core/member/quorum.h"

#include <ctype.h>
#include <string.h>

#define WORD_ROOM 32

static int64_t failure_rate(const struct metrics *m)
{
	int64_t all = metrics_answered(m);

	return all > 0 ? m->value[METRIC_FAILURES] * 1000000 / all : 0;
}

/* Whether a request can be answered so: BUSY and TIMEOUT are of those that may wait; of the others only RATE is refused by BUSY. */
static bool result_is_possible(enum verb verb, enum result result)
{
	bool waits;

	if (verb == VERB_OTHER)
		return result == RESULT_ERROR;
	waits = command_table[verb].fields & (UINT64_C(1) << FIELD_WAIT);
	return result == RESULT_OK || result == RESULT_ERROR || waits || (result == RESULT_BUSY && verb == VERB_RATE);
}

/* Of each command, in small letters, and each way in which it can be answered. */
static void tell_requests(const struct metrics *m, const struct sampler *to)
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
				sampler_tell(to, METRIC_REQUESTS, (struct sample_label){"command", word}, (struct sample_label){"result", result_word[result]},
				             m->answered[verb][result]);
	}
}

static void tell_waits(const struct metrics *m, const struct sampler *to)
{
	for (enum result i = 0; i < RESULT_N; i++)
		sampler_tell_histogram(to, METRIC_WAIT_TIMES, "result", result_word[i], &m->wait[i],
		                       i == RESULT_OK ? m->value[METRIC_WAIT_TOTAL] : m->wait_us[i]);
}

_Static_assert(LOSS_N <= METRIC_LOSSES_MOST, "one figure for each");

static void tell_losses(const struct metrics *m, const struct sampler *to)
{
	for (enum loss i = 0; i < LOSS_N; i++)
		sampler_tell_one(to, METRIC_LEASES_LOST, "reason", loss_word(i), m->lost[i]);
}

static void tell_name_groups(const struct core *c, enum metric which, const struct sampler *to)
{
	for (unsigned i = 0; i < name_groups_count(c->name_groups); i++) {
		const struct name_group *g = name_groups_at(c->name_groups, i);

		if (which == METRIC_GROUP_LOSSES)
			sampler_tell_one(to, which, "group", g->label, g->lost);
		else if (which == METRIC_GROUP_WAIT_TIMES)
			sampler_tell_histogram(to, which, "group", g->label, &g->wait, g->wait_us);
		else if (which == METRIC_GROUP_HOLD_TIMES)
			sampler_tell_histogram(to, which, "group", g->label, &g->hold, g->hold_us);
		else
			for (enum result result = 0; result < RESULT_N; result++)
				sampler_tell(to, which, (struct sample_label){"group", g->label}, (struct sample_label){"result", result_word[result]},
				             g->answered[result]);
	}
}

static void tell_stores(const struct request_context *x, enum metric which, const struct sampler *to)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		const struct member *m = &x->engine->members.node[i];
		const char *name = core_calls(x->core, i);
		struct trouble trouble = member_trouble(&x->engine->members, m);

		if (which == METRIC_REDIS_TROUBLE && trouble.defect)
			sampler_tell(to, which, (struct sample_label){"server", name}, (struct sample_label){"cause", defect_table[trouble.defect].word}, 1);
		else if (which == METRIC_REDIS_TROUBLE)
			continue;
		else if (which == METRIC_REDIS_UP)
			sampler_tell_one(to, which, "server", name, member_serves(&x->engine->members, m));
		else
			sampler_tell_histogram(to, which, "server", name, &m->trips, m->trips_us);
	}
}

static void tell_family(const struct request_context *x, enum metric which, const struct sampler *to)
{
	const struct metrics *m = &x->core->metrics;

	switch (which) {
	case METRIC_REQUESTS:
		tell_requests(m, to);
		break;
	case METRIC_LEASES_LOST:
		tell_losses(m, to);
		break;
	case METRIC_BUILD_INFO:
		sampler_tell(to, which, (struct sample_label){"version", REDLOCKD_VERSION}, (struct sample_label){"store", x->core->conf.store}, 1);
		break;
	case METRIC_REDIS_UP:
	case METRIC_REDIS_TROUBLE:
	case METRIC_ROUND_TRIPS:
		tell_stores(x, which, to);
		break;
	case METRIC_GROUP_REQUESTS:
	case METRIC_GROUP_LOSSES:
	case METRIC_GROUP_WAIT_TIMES:
	case METRIC_GROUP_HOLD_TIMES:
		tell_name_groups(x->core, which, to);
		break;
	case METRIC_WAIT_TIMES:
		tell_waits(m, to);
		break;
	case METRIC_HOLD_TIMES:
		sampler_tell_histogram(to, which, NULL, NULL, &m->hold, m->value[METRIC_HOLD_TOTAL]);
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
			sampler_tell_plain(to, i, value_now(x, i));
			break;
		case METRIC_TOLD:
			family = i;
			tell_family(x, i, to);
			break;
		case METRIC_CELL:
			sampler_tell_one(to, family, metric_table[family].labels, metric_table[i].name, value_now(x, i));
			break;
		case METRIC_OUTER:
			if (outer)
				outer->tell(outer->context, i, to);
			break;
		}
}
