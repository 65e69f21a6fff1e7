/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds the web listeners to the service: their sessions are ordinary sessions of the service. The facts about this host come from here. */
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

/* The tokens were checked with the configuration. 0, or -errno and none. */
static int tokens_of(const struct conf *c, bool api, char **ret_token, char **ret_metrics_token)
{
	int r = conf_secret(c, api ? KEY_API_TOKEN_FILE : KEY_HTTP_TOKEN_FILE, ret_token);

	*ret_metrics_token = NULL;
	if (r < 0)
		return r;
	r = api ? 0 : conf_secret(c, KEY_HTTP_METRICS_TOKEN_FILE, ret_metrics_token);
	if (r < 0)
		mem_wipe(*ret_token);
	return r;
}

/* The certificate was checked with the configuration. NULL: no memory, or it or a token cannot be read any more. */
static struct web *web_begin(struct daemon *d, const struct conf_address *address, bool api)
{
	const struct conf *c = d->conf;
	struct web_conf conf = {.path = address->path, .host = address->host, .port = address->port, .access = listen_access(c), .hosts = c->http.hosts,
	                        .room = api ? &api_room : NULL};
	/* For the service its sessions are those of clients. */
	struct web_sink sink = {.context = d, .open = pump_net_sink.open, .line = pump_net_sink.line, .sent = pump_net_sink.sent,
	                        .gone = pump_net_sink.gone, .taken = on_taken, .looks = on_looks,
	                        .ready = on_ready, .metrics = on_metrics, .server = on_server};
	struct web *w;
	char *token, *metrics_token;

	if (api && c->api.tls && !(conf.tls = credentials_listen(&d->credentials, c)))
		return NULL;
	if (tokens_of(c, api, &token, &metrics_token) < 0) {
		tls_context_free(conf.tls);
		return NULL;
	}
	conf.token = token;
	conf.metrics_token = metrics_token;
	w = web_new(d->base, &conf, &sink);
	mem_wipe(token);
	mem_wipe(metrics_token);
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

typedef void token_set(struct web *w, const char *token);

static void token_reload(struct daemon *d, struct web *w, enum conf_key key, token_set *set)
{
	const struct conf *c = d->conf;
	char *token;
	int r;

	if (!w)
		return;
	r = conf_secret(c, key, &token);
	if (r < 0) {
		log_event(LOG_ERROR, "token", "file=%s error=\"%s\" note=\"the former one stays in use\"", conf_file_name(c, key), strerror(-r));
		d->reloaded.failed = true;
		return;
	}
	set(w, token);
	mem_wipe(token);
}

void site_reload(struct daemon *d)
{
	token_reload(d, d->web, KEY_HTTP_TOKEN_FILE, web_set_token);
	token_reload(d, d->web, KEY_HTTP_METRICS_TOKEN_FILE, web_set_metrics_token);
	token_reload(d, d->api, KEY_API_TOKEN_FILE, web_set_token);
}

void site_stop(struct daemon *d)
{
	web_free(d->web);
	web_free(d->api);
	mem_free(d->web_where);
	mem_free(d->api_where);
}
