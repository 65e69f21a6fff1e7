/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of STATS and of /metrics: their table, samples with their labels, and figures of groups of names. */
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
enum metric_source { METRIC_PLAIN, METRIC_CELL, METRIC_FAMILY, METRIC_OUTER };

struct metric_row {
	const char *name;
	enum metric_kind kind;
	enum metric_source source;
	const char *labels; /* separated by commas */
	const char *help;
};

extern const struct metric_row metric_table[METRIC_N];

/* The result of a request. */
enum result { RESULT_OK, RESULT_BUSY, RESULT_TIMEOUT, RESULT_ERROR, RESULT_N };
extern const char *const result_word[RESULT_N];

#define METRIC_LOSSES_MOST 8
#define VERB_OTHER VERB_N /* of a line that is not a request */

struct metrics {
	int64_t value[METRIC_N];                   /* of PLAIN and CELL */
	int64_t answered[VERB_OTHER + 1][RESULT_N]; /* METRIC_REQUESTS */
	int64_t lost[METRIC_LOSSES_MOST];          /* METRIC_LEASES_LOST: of each enum loss */
	struct histogram wait[RESULT_N];           /* METRIC_WAIT_TIMES; the sum of RESULT_OK is WAIT_TOTAL, those of the others are here: */
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

/* A request was refused, after this time. */
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

/*
 * Samples: the figures one by one, each with its labels. STATS prints them as rows and /metrics as lines. Both use the functions below, so names, labels and
 * values are the same. A histogram becomes many samples: NAME_bucket with the label le, NAME_sum and NAME_count, as Prometheus wants it.
 */

#define SAMPLE_LABELS 3
#define SAMPLE_TEXT   32
#define SAMPLE_NAME   96

struct sample_label {
	const char *name, *value;
};

struct sample {
	enum metric metric;
	const char *part;   /* "_bucket", "_sum", "_count"; else "" */
	bool in_seconds;    /* value is in microseconds, and printed in seconds */
	int64_t value;
	unsigned labels;
	struct sample_label label[SAMPLE_LABELS];
};

/* Who takes the samples. A sample and its texts are valid during the call. */
struct sampler {
	void *context;
	void (*take)(void *context, const struct sample *s);
	bool buckets; /* also the distributions of histograms, not only their sums and counts */
};

/* The value for people and programs: "12", or "1.250000" in seconds. */
void sample_text(const struct sample *s, char out[SAMPLE_TEXT]);
/* Its name without redlockd_ before it. Returns the length. */
size_t sample_name(const struct sample *s, char out[SAMPLE_NAME]);

/* label, more: the labels of the row, in order; .name NULL: there is none. */
void sampler_report(const struct sampler *to, enum metric which, struct sample_label label, struct sample_label more, int64_t value);
void sampler_report_plain(const struct sampler *to, enum metric which, int64_t value);
void sampler_report_one(const struct sampler *to, enum metric which, const char *label, const char *of, int64_t value);
/* label NULL: none. */
void sampler_report_histogram(const struct sampler *to, enum metric which, const char *label, const char *of, const struct histogram *h, int64_t sum_us);

/*
 * Figures of groups of names. metrics.groups of the configuration has a label and a pattern for each group: a name, or a prefix and a final *. A name counts
 * for the first group that it matches. Only labels are reported, so clients cannot make more figures.
 */

struct name_group {
	const char *label;
	int64_t answered[RESULT_N], lost;
	struct histogram wait, hold;
	int64_t wait_us, hold_us; /* their sums */
};

struct name_groups; /* NULL: none */

/* text: "label TAB pattern" for each, at most 64, separated by newlines; NULL: none. Keeps the figures of labels that `former` has, and frees `former`. */
struct name_groups *name_groups_new(const char *text, struct name_groups *former);
void name_groups_free(struct name_groups *g);

unsigned name_groups_count(const struct name_groups *g);
const struct name_group *name_groups_at(const struct name_groups *g, unsigned i);

/* A request for the name was answered with this result, after this time. */
void name_groups_waited(struct name_groups *g, struct span name, enum result result, int64_t us);
/* A hold has ended, after this time. */
void name_groups_held(struct name_groups *g, struct span name, int64_t us);
void name_groups_lost(struct name_groups *g, struct span name);

#endif
