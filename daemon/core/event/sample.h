/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples: the figures as they are told, each with its labels, one by one. STATS prints them as rows and /metrics as lines, both from here, so that names,
 * labels and values are the same. A histogram is told as many samples: NAME_bucket with the label le, NAME_sum and NAME_count, as Prometheus wants it.
 */
#ifndef CORE_SAMPLE_H
#define CORE_SAMPLE_H

#include "daemon/core/event/metric.h"

#define SAMPLE_LABELS 3
#define SAMPLE_TEXT   32
#define SAMPLE_NAME   96

struct sample_label {
	const char *name, *value;
};

struct sample {
	enum metric metric;
	const char *part;   /* "_bucket", "_sum", "_count"; else "" */
	bool in_seconds;    /* value is in microseconds, and told in seconds */
	int64_t value;
	unsigned labels;
	struct sample_label label[SAMPLE_LABELS];
};

/* Who is told. The sample and its texts are valid during the call. */
struct sampler {
	void *context;
	void (*take)(void *context, const struct sample *s);
	bool buckets; /* also of the distributions of histograms, not only of their sums and counts */
};

/* The value for people and programs: "12", or "1.250000" in seconds. */
void sample_text(const struct sample *s, char out[SAMPLE_TEXT]);
/* Its name without redlockd_ before it. Returns the length. */
size_t sample_name(const struct sample *s, char out[SAMPLE_NAME]);

/* label, more: the labels of the row, in its order; .name NULL: there is none. */
void sampler_tell(const struct sampler *to, enum metric which, struct sample_label label, struct sample_label more, int64_t value);
void sampler_tell_plain(const struct sampler *to, enum metric which, int64_t value);
void sampler_tell_one(const struct sampler *to, enum metric which, const char *label, const char *of, int64_t value);
/* label NULL: none. */
void sampler_tell_histogram(const struct sampler *to, enum metric which, const char *label, const char *of, const struct histogram *h, int64_t sum_us);

#endif
