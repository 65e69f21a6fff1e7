/* SPDX-License-Identifier: BSD-2-Clause */
/* See tally.h. */
#include "daemon/core/tally.h"

#include "daemon/core/quorum.h"

#include <ctype.h>
#include <string.h>

#define WORD_ROOM 32

static int64_t failure_rate(const struct metrics *m)
{
	int64_t all = metrics_answered(m);

	return all > 0 ? m->value[METRIC_FAILURES] * 1000000 / all : 0;
}

/* Of each command, in small letters. */
static void tell_requests(const struct metrics *m, const struct sampler *to)
{
	int64_t others = m->value[METRIC_REQUESTS];
	char word[WORD_ROOM];

	for (unsigned i = 0; i < VERB_N; i++) {
		const char *from = command_table[i].word;
		size_t n = 0;

		for (; from[n] && n < sizeof(word) - 1; n++)
			word[n] = (char)tolower((unsigned char)from[n]);
		word[n] = '\0';
		sampler_tell_one(to, METRIC_REQUESTS, "command", word, m->requests[i]);
		others -= m->requests[i];
	}
	sampler_tell_one(to, METRIC_REQUESTS, "command", "other", others);
}

static void tell_stores(const struct commander *x, enum metric which, const struct sampler *to)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		const struct member *m = &x->engine->members.node[i];
		const char *name = x->core->conf.home[i] ? x->core->conf.home[i] : x->core->conf.label[i];

		if (which == METRIC_REDIS_UP)
			sampler_tell_one(to, which, "server", name, member_usable(m));
		else
			sampler_tell_histogram(to, which, "server", name, &m->trips, m->trips_us);
	}
}

static void tell_family(const struct commander *x, enum metric which, const struct sampler *to)
{
	const struct metrics *m = &x->core->metrics;

	switch (which) {
	case METRIC_REQUESTS:
		tell_requests(m, to);
		break;
	case METRIC_BUILD_INFO:
		sampler_tell(to, which, (struct sample_label){"version", REDLOCKD_VERSION}, (struct sample_label){"store", x->core->conf.store}, 1);
		break;
	case METRIC_REDIS_UP:
	case METRIC_ROUND_TRIPS:
		tell_stores(x, which, to);
		break;
	case METRIC_WAIT_TIMES:
		sampler_tell_histogram(to, which, NULL, NULL, &m->wait, m->value[METRIC_WAIT_TOTAL]);
		break;
	case METRIC_HOLD_TIMES:
		sampler_tell_histogram(to, which, NULL, NULL, &m->hold, m->value[METRIC_HOLD_TOTAL]);
		break;
	default: /* its cells follow */
		break;
	}
}

static int64_t value_now(const struct commander *x, enum metric which)
{
	const struct metrics *m = &x->core->metrics;

	switch (which) {
	case METRIC_NAMES:
		return (int64_t)x->engine->table.map.count;
	case METRIC_TIMERS:
		return (int64_t)x->core->timers.count;
	case METRIC_FAILURE_RATE:
		return failure_rate(m);
	case METRIC_QUORUM_AVAILABLE:
		return members_usable(&x->engine->members) >= quorum_of(x->core->conf.nodes);
	default:
		return m->value[which];
	}
}

void tally(const struct commander *x, const struct sampler *to)
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
