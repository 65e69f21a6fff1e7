/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The N nodes, their common parts, and the calls to nodes that are down. Those calls are answered in the next pass of the loop, because the sink is never
 * called from inside upstream_call.
 */
#include "daemon/redis/upstream.h"
#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"
#include "daemon/redis/loop.h"
#include "daemon/redis/node.h"
#include "tls/context.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

struct refusal {
	uint64_t call;
	unsigned node;
};

struct refusals {
	struct refusal *item;
	unsigned count, cap;
};

struct upstream {
	struct upstream_sink sink;
	struct link_conf link;
	struct node_conf conf;
	struct sentinel_conf sentinel;
	char *channel, *server_name;
	struct resolver *resolver;
	struct rng rng;
	uint64_t key[2]; /* key of the hash that pins a name to a link */
	unsigned nodes;
	struct node *node[NODES_MAX];
	struct refusals refused, reporting; /* new refusals; refusals that are being answered, which may lead to new ones */
	struct event *refuse;
};

/* --- calls to a node that is down ------------------------------------------------------------------------------------ */

/* A timer of 0 s runs after the sockets were polled. So sockets are served even if a caller repeats its call at once. */
static void upstream_refuse(struct upstream *u, const struct call *call)
{
	struct refusals *r = &u->refused;

	if (r->count == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->item = mem_grow(r->item, r->cap, sizeof(*r->item));
	}
	r->item[r->count++] = (struct refusal){call->id, call->node};
	loop_arm(u->refuse, 0);
}

static void upstream_report_refusal(struct upstream *u, const struct refusal *refusal)
{
	const char *reason = node_reason(u->node[refusal->node]);
	struct answer a = {
		.call = refusal->call,
		.node = refusal->node,
		.class = ANSWER_REFUSED,
		.unsent = true,
		.fence = -1,
		.pttl_ms = -2,
		.text = span_of(*reason ? reason : "not connected"),
	};

	u->sink.answer(u->sink.context, &a);
}

static void upstream_answer_refused(struct upstream *u)
{
	struct refusals reporting = u->refused;
	unsigned i;

	u->refused = u->reporting;
	u->reporting = reporting;
	for (i = 0; i < reporting.count; i++)
		upstream_report_refusal(u, &reporting.item[i]);
	u->reporting.count = 0;
}

static void upstream_on_refuse(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	upstream_answer_refused(context);
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

void upstream_set_password(struct upstream *u, const char *user, const char *password)
{
	char *new_user = mem_text(user), *new_password = mem_text(password);

	free(u->link.stream.user);
	mem_wipe(u->link.stream.password);
	u->link.stream.user = new_user;
	u->link.stream.password = new_password;
}

void upstream_set_tls(struct upstream *u, struct ssl_ctx_st *context)
{
	tls_context_free(u->link.tls);
	u->link.tls = context;
}

static void upstream_configure(struct upstream *u, struct event_base *base, const struct upstream_conf *conf)
{
	if (conf->daemon_id && asprintf(&u->channel, "redlockd:%sd:%s", conf->key_prefix, conf->daemon_id) < 0)
		mem_exhausted();
	script_keys_init(&u->link.stream.keys, conf->key_prefix, conf->skew_us, conf->tolerance_us, conf->daemon_id ? conf->daemon_id : "");
	upstream_set_password(u, conf->user, conf->password);
	u->link.stream.database = conf->database;
	u->link.connect_timeout_us = conf->connect_timeout_us;
	u->link.stall_us = conf->stall_us;
	u->link.ping_us = conf->ping_us;
	u->link.tls = conf->tls;
	u->server_name = mem_text(conf->server_name);
	u->sentinel = (struct sentinel_conf){
		.base = base,
		.resolver = u->resolver,
		.tls = &u->link.tls,
		.server_name = u->server_name,
		.user = mem_text(conf->sentinel_user),
		.password = mem_text(conf->sentinel_password),
		.timeout_us = conf->connect_timeout_us,
		.poll_us = SENTINEL_POLL_US,
	};
	u->conf = (struct node_conf){
		.base = base,
		.sentinel = &u->sentinel,
		.link = &u->link,
		.resolver = u->resolver,
		.rng = &u->rng,
		.links = conf->links,
		.channel = u->channel,
		.name_us = NAME_POLL_US,
		.path_us = PATH_POLL_US,
		.redial_us = REDIAL_US,
		.reuse_us = conf->quarantine_us / 2 < REUSE_US ? conf->quarantine_us / 2 : REUSE_US,
		.server_name = u->server_name,
		.sink = &u->sink,
	};
}

struct upstream *upstream_new(struct event_base *base, const struct upstream_conf *conf, const struct upstream_sink *sink)
{
	struct upstream *u = mem_alloc(sizeof(*u));
	uint64_t seed[2];

	assert(conf->nodes <= NODES_MAX && conf->links >= 1);
	u->sink = *sink;
	rng_seed_from_system(u->key);
	rng_seed_from_system(seed);
	rng_init(&u->rng, seed);
	u->resolver = resolver_new(base, getaddrinfo);
	u->refuse = loop_timer(base, upstream_on_refuse, u);
	upstream_configure(u, base, conf);
	for (u->nodes = 0; u->nodes < conf->nodes; u->nodes++) {
		u->node[u->nodes] = node_new(&u->conf, u->nodes, &conf->address[u->nodes]);
	}
	return u;
}

void upstream_free(struct upstream *u)
{
	if (!u)
		return;
	while (u->nodes)
		node_free(u->node[--u->nodes]);
	resolver_free(u->resolver);
	event_free(u->refuse);
	free(u->refused.item);
	free(u->reporting.item);
	script_keys_release(&u->link.stream.keys);
	free(u->channel);
	free(u->server_name);
	tls_context_free(u->link.tls);
	free(u->link.stream.user);
	mem_wipe(u->link.stream.password);
	free(u->sentinel.user);
	mem_wipe(u->sentinel.password);
	free(u);
}

void upstream_call(struct upstream *u, const struct call *call)
{
	assert(call->node < u->nodes);
	if (!node_call(u->node[call->node], call, siphash(u->key, call->name.p, call->name.n)))
		upstream_refuse(u, call);
}

bool upstream_flush(struct upstream *u, struct instant now, bool at_once)
{
	bool again = false;

	for (unsigned i = 0; i < u->nodes; i++)
		again |= node_flush(u->node[i], now, at_once);
	return again;
}

bool upstream_waits(const struct upstream *u)
{
	bool waits = false;

	for (unsigned i = 0; i < u->nodes; i++)
		waits |= node_waits(u->node[i]);
	return waits;
}

int64_t upstream_cert_ends(const struct upstream *u, unsigned node)
{
	return node_cert_ends(u->node[node]);
}

struct upstream_failures upstream_failures(const struct upstream *u, unsigned node)
{
	return node_failures(u->node[node]);
}

bool upstream_is_quiet(const struct upstream *u)
{
	bool quiet = !u->refused.count;

	for (unsigned i = 0; i < u->nodes; i++)
		quiet &= node_is_quiet(u->node[i]);
	return quiet;
}
