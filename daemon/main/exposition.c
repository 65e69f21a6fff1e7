/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of /metrics (Prometheus, format 0.0.4): the samples of STATS with redlockd_ before their names, and the usual figures of a process. No name of a
 * lock is in it, so its size does not depend on what clients do.
 */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const types[] = {
	[METRIC_GAUGE] = "gauge",          [METRIC_COUNTER] = "counter", [METRIC_TIME] = "gauge",
	[METRIC_TIME_COUNTER] = "counter", [METRIC_TIME_PEAK] = "gauge", [METRIC_HISTOGRAM] = "histogram",
};

static void head_write(struct buf *out, const char *prefix, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name, type);
}

/* --- the samples of STATS --- */

/* The value of a label: backslash, quote and newline are escaped. */
static void label_write(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			buf_append(out, "\\", 1);
		if (*text == '\n')
			buf_append(out, "\\n", 2);
		else
			buf_append(out, text, 1);
	}
}

struct page {
	struct buf *out;
	enum metric family; /* METRIC_N: none yet */
};

static void sample_write(void *context, const struct sample *s)
{
	const struct metric_row *row = &metric_table[s->metric];
	char name[SAMPLE_NAME], value[SAMPLE_TEXT];
	struct page *page = context;

	if (page->family != s->metric)
		head_write(page->out, "redlockd_", row->name, types[row->kind], row->help);
	page->family = s->metric;
	sample_name(s, name);
	sample_text(s, value);
	buf_printf(page->out, "redlockd_%s", name);
	for (unsigned i = 0; i < s->labels; i++) {
		buf_printf(page->out, "%c%s=\"", i == 0 ? '{' : ',', s->label[i].name);
		label_write(page->out, s->label[i].value);
		buf_append(page->out, "\"", 1);
	}
	buf_printf(page->out, "%s %s\n", s->labels > 0 ? "}" : "", value);
}

/* --- the process --- */

static int64_t memory_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long total = 0, resident = 0;

	if (!f)
		return 0;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes valid numbers */
	if (fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static void number_write(struct buf *out, const char *name, const char *type, const char *help, int64_t value)
{
	head_write(out, "", name, type, help);
	buf_printf(out, "%s %" PRId64 "\n", name, value);
}

static void seconds_write(struct buf *out, const char *name, const char *type, const char *help, int64_t us)
{
	head_write(out, "", name, type, help);
	buf_printf(out, "%s %" PRId64 ".%06" PRId64 "\n", name, us / SEC, us % SEC);
}

static void process_write(const struct daemon *d, struct buf *out)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	seconds_write(out, "process_start_time_seconds", "gauge", "when the daemon was started, since 1970", d->started.us + d->wall_ahead_at_start_us);
	seconds_write(out, "process_cpu_seconds_total", "counter", "processor time that the daemon has used",
	              (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SEC + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	number_write(out, "process_resident_memory_bytes", "gauge", "memory of the daemon", memory_bytes());
}

void exposition_write(const struct daemon *d, struct buf *out)
{
	struct page page = {out, METRIC_N};

	service_tally(d->service, &(struct sampler){&page, sample_write, true});
	process_write(d, out);
}

/* --- for the log: a line about the daemon, and one for each figure of STATS that is not 0, except the buckets of histograms --- */

static void sample_log(void *context, const struct sample *s)
{
	char name[SAMPLE_NAME], value[SAMPLE_TEXT], labels[256] = "";
	size_t n = 0;

	(void)context;
	if (s->value == 0)
		return;
	sample_name(s, name);
	sample_text(s, value);
	for (unsigned i = 0; i < s->labels && n < sizeof(labels); i++)
		n += (size_t)snprintf(labels + n, sizeof(labels) - n, " %s=%s", s->label[i].name, s->label[i].value);
	log_event(LOG_NOTICE, "status", "metric=%s value=%s%s", name, value, labels);
}

void status_log(struct daemon *d)
{
	char text[sizeof(d->status)];

	service_status(d->service, text, sizeof(text));
	log_event(LOG_NOTICE, "status", "version=%s pid=%d up_s=%" PRId64 " store=%s now=\"%s\" connections=%u%s", REDLOCKD_VERSION, (int)getpid(),
	          instant_diff(clock_boottime(), d->started) / SEC, d->core_conf.store, text, net_sessions(d->net), d->stopping ? " stopping=yes" : "");
	service_tally(d->service, &(struct sampler){NULL, sample_log, false});
}
