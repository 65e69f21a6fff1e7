/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of the daemon around the service: its clients, its connections to the stores, its configuration. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"

#include <sys/param.h>

static void report_errors(const struct daemon *d, const struct sampler *to)
{
	struct service_store store;

	for (unsigned i = 0; d->upstream && i < d->core_conf.nodes; i++) {
		struct upstream_failures failures = upstream_failures(d->upstream, i);

		service_store(d->service, i, &store);
		sampler_report(to, METRIC_REDIS_ERRORS, (struct sample_label){"server", store.name}, (struct sample_label){"kind", "broken"},
		             (int64_t)failures.broken);
		sampler_report(to, METRIC_REDIS_ERRORS, (struct sample_label){"server", store.name}, (struct sample_label){"kind", "attempt"},
		             (int64_t)failures.attempts);
	}
}

static void report_clients(const struct daemon *d, enum metric which, const struct sampler *to)
{
	static const char *const word[NET_TRANSPORTS] = {[NET_UNIX] = "unix", [NET_TCP] = "tcp", [NET_TLS] = "tls"};
	unsigned sessions[NET_TRANSPORTS];
	struct net_counts counts;

	net_counts(d->net, &counts);
	if (which == METRIC_CLIENTS)
		net_sessions_by(d->net, sessions);
	for (unsigned i = 0; i < NET_TRANSPORTS; i++)
		sampler_report_one(to, which, "transport", word[i], which == METRIC_CLIENTS ? (int64_t)sessions[i] : (int64_t)counts.accepted[i]);
}

static void report_count(const struct daemon *d, enum metric which, const struct sampler *to)
{
	struct net_counts counts;

	net_counts(d->net, &counts);
	sampler_report_plain(to, which, (int64_t)(which == METRIC_HANDOVER_CLIENTS ? counts.handed_over : counts.refused));
}

/* Nothing while no certificate is in use. */
static void report_certificates(const struct daemon *d, const struct sampler *to)
{
	int64_t ends = MIN(d->credentials.listen_ends, d->credentials.redis_ends);

	for (unsigned i = 0; d->upstream && i < d->core_conf.nodes; i++)
		ends = MIN(ends, upstream_cert_ends(d->upstream, i));
	if (ends < INT64_MAX)
		sampler_report_plain(to, METRIC_CERTIFICATE_EXPIRES, ends - clock_wall_us() / SEC);
}

static void outer_report(void *context, enum metric which, const struct sampler *to)
{
	const struct daemon *d = context;

	switch (which) {
	case METRIC_REDIS_ERRORS:
		report_errors(d, to);
		break;
	case METRIC_CLIENTS:
	case METRIC_CONNECTIONS:
		report_clients(d, which, to);
		break;
	case METRIC_CONNECTIONS_REFUSED:
	case METRIC_HANDOVER_CLIENTS:
		report_count(d, which, to);
		break;
	case METRIC_RELOAD_SUCCESSFUL:
		sampler_report_plain(to, which, !d->reloaded.failed && !d->address_lacks);
		break;
	case METRIC_JOURNAL_WRITABLE:
		sampler_report_plain(to, which, !d->journal.unusable && d->folder_error == 0);
		break;
	case METRIC_AUDIT_WRITABLE:
		sampler_report_plain(to, which, !audit_file_is_lost(&d->audit));
		break;
	case METRIC_CERTIFICATE_EXPIRES:
		report_certificates(d, to);
		break;
	case METRIC_SOCKETS_LOST:
		sampler_report_plain(to, which, net_sockets_lost(d->net) + (d->web && web_is_lost(d->web)) + (d->api && web_is_lost(d->api)));
		break;
	case METRIC_RELOAD_TIMESTAMP:
		sampler_report_plain(to, which, d->reloaded.wall_us);
		break;
	default:
		break;
	}
}

void outer_figures_start(struct daemon *d)
{
	d->outer = (struct outer){d, outer_report};
	d->core_conf.outer = &d->outer;
}
