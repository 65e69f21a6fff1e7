/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds the web listeners to the service: their sessions are sessions of the service as any others, and what they tell of this host comes from here. */
#include "daemon/main/internal.h"

#include "daemon/api/api.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "proto/proto.h"
#include "tls/context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static bool on_taken(void *context, uint32_t slot)
{
	const struct daemon *d = context;

	return net_has_slot(d->net, slot);
}

static bool on_looks(void *context, const struct peer *peer, bool some)
{
	const struct daemon *d = context;

	return service_lets_look(d->service, peer, some);
}

static int token_of(const struct conf *c, bool api, char **ret_token)
{
	return api ? conf_api_token(c, ret_token) : conf_token(c, ret_token);
}

static void token_forget(char *token)
{
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
}

/* The token and the certificate were checked when the configuration was read. NULL: no memory, or they cannot be read any more. */
static struct web *web_begin(struct daemon *d, const struct conf_address *address, bool api)
{
	const struct conf *c = d->conf;
	struct web_conf conf = {.path = address->path, .host = address->host, .port = address->port, .access = listen_access(c), .hosts = c->http.hosts,
	                        .room = api ? &api_room : NULL};
	/* Its sessions are those of clients, for the service. */
	struct web_sink sink = {.context = d, .open = pump_net_sink.open, .line = pump_net_sink.line, .sent = pump_net_sink.sent,
	                        .gone = pump_net_sink.gone, .taken = on_taken, .looks = on_looks,
	                        .ready = on_ready, .metrics = on_metrics, .server = on_server};
	struct web *w;
	char *token;

	if (api && c->api.tls && !(conf.tls = credentials_listen(&d->credentials, c)))
		return NULL;
	if (token_of(c, api, &token) < 0) {
		tls_context_free(conf.tls);
		return NULL;
	}
	conf.token = token;
	w = web_new(d->base, &conf, &sink);
	token_forget(token);
	return w;
}

int site_start(struct daemon *d)
{
	const struct conf *c = d->conf;

	if (c->listen.http.label && !(d->web = web_begin(d, &c->listen.http, false)))
		return -ENOMEM;
	if (c->listen.api.label && !(d->api = web_begin(d, &c->listen.api, true)))
		return -ENOMEM;
	return 0;
}

static void token_reload(struct daemon *d, struct web *w, bool api)
{
	char *token;
	int r;

	if (!w)
		return;
	r = token_of(d->conf, api, &token);
	if (r < 0) {
		log_event(LOG_ERROR, "token", "file=%s error=\"%s\" note=\"the former one stays in use\"",
		          api ? d->conf->api.token_file : d->conf->http.token_file, strerror(-r));
		return;
	}
	web_set_token(w, token);
	token_forget(token);
}

void site_reload(struct daemon *d)
{
	token_reload(d, d->web, false);
	token_reload(d, d->api, true);
}

void site_stop(struct daemon *d)
{
	web_free(d->web);
	web_free(d->api);
	mem_free(d->web_where);
	mem_free(d->api_where);
}
