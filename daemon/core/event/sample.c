/* SPDX-License-Identifier: BSD-2-Clause */
/* See sample.h. */
#include "daemon/core/event/sample.h"

#include "proto/decimal.h"

#include <string.h>

void sample_text(const struct sample *s, char out[SAMPLE_TEXT])
{
	uint64_t size = s->value < 0 ? 0 - (uint64_t)s->value : (uint64_t)s->value;
	char text[SAMPLE_TEXT], *end = text + sizeof(text) - 1, *at = end;

	*end = '\0';
	if (s->in_seconds) {
		for (unsigned i = 0; i < 3; i++, size /= 100)
			at = decimal_pair(at, (unsigned)(size % 100));
		*--at = '.';
	}
	at = decimal_write(at, size);
	if (s->value < 0)
		*--at = '-';
	memcpy(out, at, (size_t)(end - at) + 1);
}

size_t sample_name(const struct sample *s, char out[SAMPLE_NAME])
{
	size_t n = strlen(metric_table[s->metric].name), more = strlen(s->part);

	memcpy(out, metric_table[s->metric].name, n);
	memcpy(out + n, s->part, more + 1);
	return n + more;
}

/* The bounds of histograms in seconds, as "%g" writes them. */
static const char *const bound_text[HISTOGRAM_BOUNDS + 1] = {
	"1e-06", "2e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05",  "0.1",
	"0.2",   "0.5",   "1",     "2",     "5",     "10",    "20",     "50",     "100",    "200",   "500",   "1000",  "2000", "5000", "10000", "+Inf",
};

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
	unsigned le = label ? 1 : 0;

	s.labels = le + 1;
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		s.value += (int64_t)h->count[i];
		s.label[le] = (struct sample_label){"le", bound_text[i]};
		if (to->buckets)
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
