/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of /metrics (Prometheus, format 0.0.4): the figures of STATS with redlockd_ before their names, and what a row of STATS cannot tell. No
 * name of a lock is in it, so its size does not depend on what clients do. Times are in seconds, as Prometheus wants them: wait_total_ms is
 * redlockd_wait_seconds_total.
 */
#include "daemon/internal.h"

#include "daemon/base/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAME_ROOM 96

static void head_write(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void seconds_write(struct buf *out, int64_t us)
{
	buf_printf(out, "%s%" PRId64 ".%06" PRId64 "\n", us < 0 ? "-" : "", (us < 0 ? -us : us) / SEC, (us < 0 ? -us : us) % SEC);
}

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

/* --- the figures of STATS --- */

static bool is_time(const struct metric_row *row)
{
	return row->kind == METRIC_COUNTER_MS || row->kind == METRIC_PEAK_MS;
}

/* "wait_total_ms" -> "redlockd_wait_seconds_total", "wait_longest_ms" -> "redlockd_wait_longest_seconds" */
static void name_of(const struct metric_row *row, char out[NAME_ROOM])
{
	int stem = (int)strlen(row->name) - (row->kind == METRIC_COUNTER_MS ? 9 : row->kind == METRIC_PEAK_MS ? 3 : 0);
	const char *end = row->kind == METRIC_COUNTER_MS ? "_seconds_total" : row->kind == METRIC_PEAK_MS ? "_seconds" : "";

	snprintf(out, NAME_ROOM, "redlockd_%.*s%s", stem, row->name, end);
}

static void figure_write(struct buf *out, const struct metric_row *row, int64_t value)
{
	char name[NAME_ROOM];

	name_of(row, name);
	head_write(out, name, row->kind == METRIC_COUNTER || row->kind == METRIC_COUNTER_MS ? "counter" : "gauge", row->help);
	buf_printf(out, "%s ", name);
	if (is_time(row))
		seconds_write(out, value);
	else
		buf_printf(out, "%" PRId64 "\n", value);
}

/* Of each command, in small letters; "other" are lines that were empty, too long or not understood, and tags that were in use. */
static void requests_write(struct buf *out, const struct metric_row *row, const struct metrics *m)
{
	char name[NAME_ROOM], word[NAME_ROOM];
	int64_t others = m->value[METRIC_REQUESTS];

	name_of(row, name);
	head_write(out, name, "counter", row->help);
	for (unsigned i = 0; i < VERB_N; i++) {
		size_t n = strlen(command_table[i].word);

		for (size_t k = 0; k <= n; k++)
			word[k] = (char)tolower((unsigned char)command_table[i].word[k]);
		buf_printf(out, "%s{command=\"%s\"} %" PRId64 "\n", name, word, m->requests[i]);
		others -= m->requests[i];
	}
	buf_printf(out, "%s{command=\"other\"} %" PRId64 "\n", name, others);
}

/* STATS has a row for each kind of alarm: alarms_held_total is redlockd_alarms_total{kind="held"}. */
static void alarms_write(struct buf *out, const struct metrics *m)
{
	const char *name = "redlockd_alarms_total";

	head_write(out, name, "counter", "alarms told: long holds, long waits, minutes in which too many LOCKs failed");
	buf_printf(out, "%s{kind=\"held\"} %" PRId64 "\n", name, m->value[METRIC_ALARMS_HELD]);
	buf_printf(out, "%s{kind=\"waited\"} %" PRId64 "\n", name, m->value[METRIC_ALARMS_WAITED]);
	buf_printf(out, "%s{kind=\"failures\"} %" PRId64 "\n", name, m->value[METRIC_ALARMS_FAILURES]);
}

static bool is_alarm(unsigned metric)
{
	return metric == METRIC_ALARMS_HELD || metric == METRIC_ALARMS_WAITED || metric == METRIC_ALARMS_FAILURES;
}

/* --- histograms --- */

/* label: "" or "server=\"…\"" */
static void histogram_write(struct buf *out, const char *name, const char *label, const struct histogram *h, int64_t sum_us)
{
	const char *comma = *label ? "," : "", *open = *label ? "{" : "", *close = *label ? "}" : "";
	uint64_t count = 0;

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		count += h->count[i];
		buf_printf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, label, comma, (double)histogram_bound_us[i] / (double)SEC, count);
	}
	count += h->count[HISTOGRAM_BOUNDS];
	buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n%s_sum%s%s%s ", name, label, comma, count, name, open, label, close);
	seconds_write(out, sum_us);
	buf_printf(out, "%s_count%s%s%s %" PRIu64 "\n", name, open, label, close, count);
}

static void histograms_write(struct buf *out, const struct metrics *m)
{
	head_write(out, "redlockd_acquire_wait_seconds", "histogram", "time that granted requests spent between asking and grant");
	histogram_write(out, "redlockd_acquire_wait_seconds", "", &m->wait, m->value[METRIC_WAIT_TOTAL]);
	head_write(out, "redlockd_hold_seconds", "histogram", "time that locks were held, counted at their end");
	histogram_write(out, "redlockd_hold_seconds", "", &m->hold, m->value[METRIC_HOLD_TOTAL]);
}

/* --- stores --- */

/* A text that ends with a NUL, for printf. */
static const char *server_label(struct buf *b, const char *name)
{
	buf_clear(b);
	buf_append(b, "server=\"", 8);
	label_write(b, name);
	buf_append(b, "\"", 2);
	return buf_begin(b);
}

static void failures_write(const struct daemon *d, struct buf *out, struct buf *label)
{
	struct service_store store;

	head_write(out, "redlockd_redis_errors_total", "counter", "connections to the store that broke, attempts to connect that failed");
	for (unsigned i = 0; i < d->core_conf.nodes; i++) {
		struct upstream_failures failures = upstream_failures(d->upstream, i);

		service_store(d->service, i, &store);
		server_label(label, store.name);
		buf_printf(out, "redlockd_redis_errors_total{%s,kind=\"broken\"} %" PRIu64 "\n", buf_begin(label), failures.broken);
		buf_printf(out, "redlockd_redis_errors_total{%s,kind=\"attempt\"} %" PRIu64 "\n", buf_begin(label), failures.attempts);
	}
}

static void stores_write(const struct daemon *d, struct buf *out)
{
	struct service_store store;
	struct buf label;

	buf_init(&label);
	head_write(out, "redlockd_quorum_available", "gauge", "1 while enough stores are joined to grant locks");
	buf_printf(out, "redlockd_quorum_available %d\n", service_has_quorum(d->service));
	head_write(out, "redlockd_redis_up", "gauge", "1 while the votes of the store count and it answers in time");
	for (unsigned i = 0; i < d->core_conf.nodes; i++) {
		service_store(d->service, i, &store);
		buf_printf(out, "redlockd_redis_up{%s} %d\n", server_label(&label, store.name), store.usable);
	}
	head_write(out, "redlockd_redis_round_trip_seconds", "histogram", "time from a call to the answer of the store; one call of each round trip is timed");
	for (unsigned i = 0; i < d->core_conf.nodes; i++) {
		service_store(d->service, i, &store);
		histogram_write(out, "redlockd_redis_round_trip_seconds", server_label(&label, store.name), store.trips, store.trips_us);
	}
	if (d->upstream)
		failures_write(d, out, &label);
	buf_release(&label);
}

/* --- clients --- */

static void clients_write(const struct daemon *d, struct buf *out)
{
	static const char *const word[NET_TRANSPORTS] = {[NET_UNIX] = "unix", [NET_TCP] = "tcp", [NET_TLS] = "tls"};
	unsigned sessions[NET_TRANSPORTS];
	struct net_counts counts;

	net_sessions_by(d->net, sessions);
	net_counts(d->net, &counts);
	head_write(out, "redlockd_clients", "gauge", "connections of clients");
	for (unsigned i = 0; i < NET_TRANSPORTS; i++)
		buf_printf(out, "redlockd_clients{transport=\"%s\"} %u\n", word[i], sessions[i]);
	head_write(out, "redlockd_connections_total", "counter", "connections of clients since the start");
	for (unsigned i = 0; i < NET_TRANSPORTS; i++)
		buf_printf(out, "redlockd_connections_total{transport=\"%s\"} %" PRIu64 "\n", word[i], counts.accepted[i]);
	head_write(out, "redlockd_connections_refused_total", "counter", "connections that were answered by ERR LIMIT");
	buf_printf(out, "redlockd_connections_refused_total %" PRIu64 "\n", counts.refused);
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

static void process_write(const struct daemon *d, struct buf *out)
{
	int64_t wall_ahead_us = clock_wall_us() - clock_boottime().us;
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	head_write(out, "redlockd_build_info", "gauge", "1, with the version of the daemon and the kind of its store");
	buf_printf(out, "redlockd_build_info{version=\"%s\",store=\"%s\"} 1\n", REDLOCKD_VERSION, d->core_conf.store);
	head_write(out, "process_start_time_seconds", "gauge", "when the daemon was started, since 1970");
	buf_append(out, "process_start_time_seconds ", 27);
	seconds_write(out, d->started.us + wall_ahead_us);
	head_write(out, "redlockd_config_last_reload_successful", "gauge", "0 while a mistake keeps the configuration that was read last from being used");
	buf_printf(out, "redlockd_config_last_reload_successful %d\n", !d->reloaded.failed);
	head_write(out, "redlockd_config_last_reload_success_timestamp_seconds", "gauge", "when the configuration in use was read, since 1970");
	buf_printf(out, "redlockd_config_last_reload_success_timestamp_seconds ");
	seconds_write(out, d->reloaded.at.us + wall_ahead_us);
	head_write(out, "process_cpu_seconds_total", "counter", "processor time that the daemon has used");
	buf_append(out, "process_cpu_seconds_total ", 26);
	seconds_write(out, (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SEC + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	head_write(out, "process_resident_memory_bytes", "gauge", "memory of the daemon");
	buf_printf(out, "process_resident_memory_bytes %" PRId64 "\n", memory_bytes());
}

void exposition_write(const struct daemon *d, struct buf *out)
{
	struct metrics figures;

	service_figures(d->service, &figures);
	for (unsigned i = 0; i < METRIC_N; i++)
		if (i == METRIC_REQUESTS)
			requests_write(out, &metric_table[i], &figures);
		else if (!is_alarm(i))
			figure_write(out, &metric_table[i], figures.value[i]);
	alarms_write(out, &figures);
	histograms_write(out, &figures);
	clients_write(d, out);
	stores_write(d, out);
	process_write(d, out);
}
