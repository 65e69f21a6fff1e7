/* SPDX-License-Identifier: BSD-2-Clause */
/* See sample.h. */
#include "daemon/core/event/sample.h"

#include "daemon/base/instant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sample_text(const struct sample *s, char out[SAMPLE_TEXT])
{
	int64_t us = s->value < 0 ? -s->value : s->value;

	if (s->in_seconds)
		snprintf(out, SAMPLE_TEXT, "%s%" PRId64 ".%06" PRId64, s->value < 0 ? "-" : "", us / SEC, us % SEC);
	else
		snprintf(out, SAMPLE_TEXT, "%" PRId64, s->value);
}

size_t sample_name(const struct sample *s, char out[SAMPLE_NAME])
{
	return (size_t)snprintf(out, SAMPLE_NAME, "%s%s", metric_table[s->metric].name, s->part);
}

bool sample_is_bucket(const struct sample *s)
{
	return s->part[0] && strcmp(s->part, "_bucket") == 0;
}

void sampler_tell(const struct sampler *to, enum metric which, struct sample_label label, struct sample_label more, int64_t value)
{
	const struct sample s = {.metric = which,
	                         .part = "",
	                         .in_seconds = metric_is_time(which),
	                         .value = value,
	                         .labels = (label.name ? 1U : 0U) + (more.name ? 1U : 0U),
	                         .label = {label, more}};

	to->take(to->context, &s);
}

void sampler_tell_plain(const struct sampler *to, enum metric which, int64_t value)
{
	sampler_tell_one(to, which, NULL, NULL, value);
}

void sampler_tell_one(const struct sampler *to, enum metric which, const char *label, const char *of, int64_t value)
{
	sampler_tell(to, which, (struct sample_label){label, of}, (struct sample_label){NULL, NULL}, value);
}

void sampler_tell_histogram(const struct sampler *to, enum metric which, const char *label, const char *of, const struct histogram *h, int64_t sum_us)
{
	struct sample s = {.metric = which, .part = "_bucket", .label = {{label, of}}};
	char bound[SAMPLE_TEXT];
	unsigned le = label ? 1 : 0;

	s.labels = le + 1;
	s.label[le] = (struct sample_label){"le", bound};
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		s.value += (int64_t)h->count[i];
		if (i < HISTOGRAM_BOUNDS)
			snprintf(bound, sizeof(bound), "%g", (double)histogram_bound_us[i] / (double)SEC);
		else
			strcpy(bound, "+Inf");
		to->take(to->context, &s);
	}
	s.labels = le;
	s.part = "_count";
	to->take(to->context, &s);
	s.part = "_sum";
	s.in_seconds = true;
	s.value = sum_us;
	to->take(to->context, &s);
}
