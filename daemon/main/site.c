/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds the web listener to the service: its sessions are sessions of the service as any others, and what it tells of this host comes from here. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void on_gone(void *context, uint64_t session)
{
	struct event event = {.kind = EVENT_GONE, .session = {.id = session, .how = GONE_HANGUP}};

	pump_step(context, &event);
}

static bool on_ready(void *context, struct buf *out)
{
	const struct daemon *d = context;
	struct service_store store;

	for (unsigned i = 0; i < d->core_conf.nodes; i++) {
		service_store(d->service, i, &store);
		buf_printf(out, "%s %s%s%s\n", store.name, store.state, store.cause ? " " : "", store.cause ? store.cause : "");
	}
	return service_has_quorum(d->service);
}

static void on_metrics(void *context, struct buf *out)
{
	exposition_write(context, out);
}

static void on_server(void *context, struct buf *out)
{
	const struct daemon *d = context;
	struct reply r;
	char line[REPLY_MAX];

	reply_begin(&r, line, SPAN(""), "*");
	reply_text(&r, "version", SPAN(REDLOCKD_VERSION));
	reply_text(&r, "host", span_of(d->host));
	reply_text(&r, "store", span_of(d->core_conf.store));
	reply_text(&r, "quorum", span_of(service_has_quorum(d->service) ? "yes" : "no"));
	reply_ms(&r, "uptime_ms", instant_diff(clock_boottime(), d->started));
	reply_ms(&r, "lease_ms", d->conf->lease);
	buf_append(out, line, reply_end(&r));
}

static bool on_looks(void *context, const struct peer *peer, bool some)
{
	const struct daemon *d = context;

	return service_lets_look(d->service, peer, some);
}

/* The token was checked when the configuration was read. */
int site_start(struct daemon *d)
{
	const struct conf *c = d->conf;
	struct web_conf conf = {.path = c->listen.http.path, .host = c->listen.http.host, .port = c->listen.http.port,
	                        .access = listen_access(c), .hosts = c->http.hosts};
	/* Its sessions are those of clients, for the service. */
	struct web_sink sink = {.context = d, .open = pump_net_sink.open, .line = pump_net_sink.line, .sent = pump_net_sink.sent, .gone = on_gone,
	                        .looks = on_looks, .ready = on_ready, .metrics = on_metrics, .server = on_server};
	char *token;
	int r;

	if (!c->listen.http.label)
		return 0;
	r = conf_token(c, &token);
	if (r < 0)
		return r;
	conf.token = token;
	d->web = web_new(d->base, &conf, &sink);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
	return d->web ? 0 : -ENOMEM;
}

void site_reload(struct daemon *d)
{
	char *token;
	int r;

	if (!d->web)
		return;
	r = conf_token(d->conf, &token);
	if (r < 0) {
		log_event(LOG_ERROR, "token", "file=%s error=\"%s\" note=\"the former one stays in use\"", d->conf->http.token_file, strerror(-r));
		return;
	}
	web_set_token(d->web, token);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
}

void site_stop(struct daemon *d)
{
	web_free(d->web);
	mem_free(d->web_where);
}
