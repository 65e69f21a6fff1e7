/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/metric.h"

#include "daemon/base/mem.h"
#include "proto/decimal.h"

#include <assert.h>
#include <string.h>

/* The table of figures. */

const struct metric_row metric_table[METRIC_N] = {
#define METRIC(id, name, kind, source, labels, help) [METRIC_##id] = {name, METRIC_##kind, METRIC_##source, labels, help},
#include "daemon/core/event/metric.def"
#undef METRIC
};

const char *const result_word[RESULT_N] = {[RESULT_OK] = "ok", [RESULT_BUSY] = "busy", [RESULT_TIMEOUT] = "timeout", [RESULT_ERROR] = "error"};

int64_t metrics_answered(const struct metrics *m)
{
	return m->value[METRIC_FAILURES] + m->value[METRIC_GRANTS] + m->value[METRIC_REENTRIES] + m->value[METRIC_REFUSALS] + m->value[METRIC_TIMEOUTS];
}

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

void sampler_report(const struct sampler *to, enum metric which, struct sample_label label, struct sample_label more, int64_t value)
{
	const struct sample s = {.metric = which,
	                         .part = "",
	                         .in_seconds = metric_is_time(which),
	                         .value = value,
	                         .labels = (label.name ? 1U : 0U) + (more.name ? 1U : 0U),
	                         .label = {label, more}};

	to->take(to->context, &s);
}

void sampler_report_plain(const struct sampler *to, enum metric which, int64_t value)
{
	sampler_report_one(to, which, NULL, NULL, value);
}

void sampler_report_one(const struct sampler *to, enum metric which, const char *label, const char *of, int64_t value)
{
	sampler_report(to, which, (struct sample_label){label, of}, (struct sample_label){NULL, NULL}, value);
}

void sampler_report_histogram(const struct sampler *to, enum metric which, const char *label, const char *of, const struct histogram *h, int64_t sum_us)
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

#define GROUPS_MOST 64

/* One name, or all names that begin with the text. */
struct group {
	struct span text;
	bool begins;
};

struct name_groups {
	unsigned count;
	uint64_t may[256]; /* by the first byte of a name: a bit for each group that may match */
	char *text; /* all labels and patterns */
	struct group group[GROUPS_MOST];
	struct name_group figures[GROUPS_MOST];
};

static void group_take(struct name_groups *g, char *line, size_t n, const struct name_groups *former)
{
	char *tab = memchr(line, '\t', n);
	struct span pattern = {tab + 1, n - (size_t)(tab + 1 - line)};
	bool begins = pattern.p[pattern.n - 1] == '*';
	struct name_group *figures = &g->figures[g->count];

	*tab = '\0';
	for (unsigned i = 0; i < name_groups_count(former); i++)
		if (strcmp(former->figures[i].label, line) == 0)
			*figures = former->figures[i];
	figures->label = line;
	for (unsigned byte = 0; byte < 256; byte++)
		if (*pattern.p == '*' || (unsigned char)*pattern.p == byte)
			g->may[byte] |= UINT64_C(1) << g->count;
	g->group[g->count++] = (struct group){{pattern.p, pattern.n - begins}, begins};
}

struct name_groups *name_groups_new(const char *text, struct name_groups *former)
{
	struct name_groups *g = text ? mem_alloc(sizeof(*g)) : NULL;
	char *line = g ? g->text = mem_copy(text, strlen(text)) : NULL;

	for (size_t n; line && *line; line += n + (line[n] == '\n')) {
		assert(g->count < GROUPS_MOST);
		n = strcspn(line, "\n");
		group_take(g, line, n, former);
	}
	name_groups_free(former);
	return g;
}

void name_groups_free(struct name_groups *g)
{
	if (g)
		mem_free(g->text);
	mem_free(g);
}

unsigned name_groups_count(const struct name_groups *g)
{
	return g ? g->count : 0;
}

const struct name_group *name_groups_at(const struct name_groups *g, unsigned i)
{
	return &g->figures[i];
}

/* NULL: none. */
static struct name_group *group_of_name(struct name_groups *g, struct span name)
{
	for (uint64_t left = g->may[(unsigned char)*name.p]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct group *group = &g->group[i];

		if (group->begins ? span_starts(name, group->text) : span_equal(name, group->text))
			return &g->figures[i];
	}
	return NULL;
}

void name_groups_waited(struct name_groups *g, struct span name, enum result result, int64_t us)
{
	struct name_group *of = group_of_name(g, name);

	if (!of)
		return;
	of->answered[result]++;
	histogram_add(&of->wait, us);
	of->wait_us += us;
}

void name_groups_held(struct name_groups *g, struct span name, int64_t us)
{
	struct name_group *of = group_of_name(g, name);

	if (!of)
		return;
	histogram_add(&of->hold, us);
	of->hold_us += us;
}

void name_groups_lost(struct name_groups *g, struct span name)
{
	struct name_group *of = group_of_name(g, name);

	if (of)
		of->lost++;
}
