/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of STATS and of /metrics: metric.def. */
#ifndef CORE_METRIC_H
#define CORE_METRIC_H

#include "daemon/base/histogram.h"
#include "proto/proto.h"

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "daemon/core/event/metric.def"
#undef METRIC
	METRIC_N
};

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_TIME, METRIC_TIME_COUNTER, METRIC_TIME_PEAK, METRIC_HISTOGRAM };
enum metric_source { METRIC_PLAIN, METRIC_CELL, METRIC_TOLD, METRIC_OUTER };

struct metric_row {
	const char *name;
	enum metric_kind kind;
	enum metric_source source;
	const char *labels; /* with a comma between two */
	const char *help;
};

extern const struct metric_row metric_table[METRIC_N];

/* What became of a request. */
enum result { RESULT_OK, RESULT_BUSY, RESULT_TIMEOUT, RESULT_ERROR, RESULT_N };
extern const char *const result_word[RESULT_N];

#define METRIC_LOSSES_MOST 8
#define VERB_OTHER VERB_N /* of a line that is no request */

struct metrics {
	int64_t value[METRIC_N];                   /* of PLAIN and CELL */
	int64_t answered[VERB_OTHER + 1][RESULT_N]; /* METRIC_REQUESTS */
	int64_t lost[METRIC_LOSSES_MOST];          /* METRIC_LEASES_LOST: of each enum loss */
	struct histogram wait[RESULT_N];           /* METRIC_WAIT_TIMES; of RESULT_OK WAIT_TOTAL is the sum, of the others: */
	int64_t wait_us[RESULT_N];
	struct histogram hold;                     /* of HOLD_TOTAL */
};

/* LOCKs that were answered by the stores, by a holder, or by the lack of a quorum. */
int64_t metrics_answered(const struct metrics *m);

static inline bool metric_is_time(enum metric which)
{
	enum metric_kind kind = metric_table[which].kind;

	return kind == METRIC_TIME || kind == METRIC_TIME_COUNTER || kind == METRIC_TIME_PEAK;
}

static inline void metric_add(struct metrics *m, enum metric which, int64_t n)
{
	m->value[which] += n;
}

/* A request was refused after so long. */
static inline void metric_waited(struct metrics *m, enum result result, int64_t us)
{
	histogram_add(&m->wait[result], us);
	m->wait_us[result] += us;
}

static inline void metric_peak(struct metrics *m, enum metric which, int64_t value)
{
	if (value > m->value[which])
		m->value[which] = value;
}

#endif
