/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One server. Every failure ends in node_fail, and every attempt begins from the timer, so no callback of a link dials. A node
 * judges connections only; core decides whether the server may vote.
 */
#include "daemon/redis/node_parts.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PAUSE_FIRST_US (50 * MSEC)
#define PAUSE_CAP_US   (1 * SEC)
#define STEADY_US      (1 * SEC)    /* a node that was up for less is not dialled again at once */
#define DEMOTED_US     (1 * SEC)    /* between two checks of the name, if the server is a replica or the name leads elsewhere */
#define TAKEN_US       (10 * MSEC)  /* before calls are sent: between two checks whether another server has taken the path of a Unix socket */
#define PATIENCE_US    (500 * MSEC) /* how long to wait for the resolver if older addresses are known */

#define ANOTHER         "another master"
#define PERHAPS_ANOTHER "an address that may be of another master"

static const char *const state_names[] = {"waiting", "resolving", "dialling", "up"};

static void node_set_state(struct node *n, enum node_state state, const char *why)
{
	char scratch[320];

	log_event(LOG_DEBUG, "node-state", "node=%s from=%s to=%s why=%s", n->label, state_names[n->state], state_names[state],
		  log_quote(why, scratch, sizeof(scratch)));
	n->state = state;
}

static void node_wait(struct node *n, int64_t us, const char *why)
{
	node_set_state(n, NODE_WAITING, why);
	loop_arm(n->timer, us);
}

/* --- going down ------------------------------------------------------------------------------------------------------ */

/* Closes the links, answers their calls, and waits for the next attempt. */
static void node_fail(struct node *n, enum defect defect, const char *reason);

static void node_report_down(struct node *n)
{
	n->conf->sink->down(n->conf->sink->context, n->index, n->defect, n->reason, "");
}

static void node_close_links(struct node *n)
{
	links_close(&n->links, n->reason);
	if (n->subscriber)
		subscriber_close(n->subscriber);
	if (n->sentinel)
		sentinel_follow(n->sentinel, false);
	redial_end(n->redial);
	n->ready = 0;
}

static void node_go_down(struct node *n)
{
	bool steady = instant_diff(clock_boottime(), n->up_since) >= STEADY_US;

	n->known_at = links_answered(&n->links);
	if (steady)
		backoff_reset(&n->backoff);
	node_wait(n, steady ? 0 : backoff_next(&n->backoff, n->conf->rng), n->reason);
	n->fresh = false;
	node_close_links(n); /* the state is already down, because an answer may lead to a new call */
	node_report_down(n);
}

/* Another server has replaced the connected one. This is reported even for a node that is down. */
static void node_leave(struct node *n, enum defect defect, const char *reason, const char *where)
{
	if (n->state == NODE_UP)
		node_fail(n, defect, reason);
	n->conf->sink->down(n->conf->sink->context, n->index, defect, reason, where);
}

/* The sentinels name another server. What was known of the former one is forgotten: if the sentinels fall silent, it must not be used again. */
static void node_be_replaced(struct node *n, const char *what)
{
	char where[300], reason[sizeof(n->reason)];

	n->voted = false;
	n->known[0] = '\0';
	n->home = (struct endpoint){0};
	sentinel_where(n->sentinel, where, sizeof(where));
	(void)snprintf(reason, sizeof(reason), "the sentinels name %s: %.150s", what, where);
	node_leave(n, DEFECT_SENTINEL, reason, where);
}

/* The address failed: tries the next one, or pauses. */
static void node_give_up(struct node *n)
{
	if (n->fresh && ++n->next < n->addresses.count) {
		node_wait(n, 0, n->reason);
		node_close_links(n);
		return;
	}
	n->fresh = false;
	node_wait(n, backoff_next(&n->backoff, n->conf->rng), n->reason);
	node_close_links(n);
	if (n->voted && n->renamed)
		node_be_replaced(n, PERHAPS_ANOTHER); /* only its run id could have shown that it is the same server */
	node_report_down(n);
}

static void node_note(struct node *n, enum defect defect, const char *reason)
{
	n->defect = defect;
	if (reason != n->reason)
		(void)snprintf(n->reason, sizeof(n->reason), "%s", reason);
}

/* A further address cannot be reached. The failure of an earlier one says more, so that reason stays. */
static bool node_is_less(const struct node *n, enum defect defect)
{
	return n->state == NODE_DIALLING && n->fresh && n->next > 0 && defect == DEFECT_UNREACHED;
}

/* An attempt that no sentinel has confirmed keeps the reason why none did. */
static void node_fail(struct node *n, enum defect defect, const char *reason)
{
	if (n->state == NODE_UP || (!n->known_only && !node_is_less(n, defect)))
		node_note(n, defect, reason);
	if (n->state == NODE_UP) {
		n->failures.broken++;
		node_go_down(n);
	} else {
		n->failures.attempts++;
		node_give_up(n);
	}
}

/* Where sentinels tell the address, "Connection refused" or "NOAUTH" alone would not show which server that is. */
static void node_fail_there(struct node *n, enum defect defect, const char *reason)
{
	char where[300], text[sizeof(n->reason)];

	if (n->state == NODE_DIALLING && endpoint_equal(&n->dialled, &n->home)) {
		bool shut = strcmp(reason, failure_errno(ECONNREFUSED)) == 0;

		n->home_shut = shut ? instant_min(n->home_shut, clock_boottime()) : INSTANT_NEVER;
	}
	if (n->sentinel && n->state != NODE_UP) {
		sentinel_where(n->sentinel, where, sizeof(where));
		(void)snprintf(text, sizeof(text), "%.90s, which the sentinels told: %.135s", where, reason);
		node_fail(n, defect == DEFECT_UNKNOWN_HOST ? DEFECT_SENTINEL : defect, text);
	} else {
		node_fail(n, defect, reason);
	}
}

static void node_on_broken(void *context, enum defect defect, const char *reason)
{
	node_fail_there(context, defect, reason);
}

/* --- going up -------------------------------------------------------------------------------------------------------- */

/* Only a replica is left here, and new connections reach another server: the timer ends the old connections. */
static bool node_is_left_behind(const struct node *n)
{
	return n->state == NODE_UP && n->demoted && n->split;
}

static void node_on_reached(void *context, const char *run_id)
{
	struct node *n = context;

	node_compare(n, span_of(link_run_id(n->links.item[0])), span_of(run_id));
	if (node_is_left_behind(n))
		loop_arm(n->timer, 0);
}

/* Arms the timer that checks the name or path, if the node has one. */
static void node_watch_name(struct node *n)
{
	if (n->named)
		loop_arm(n->timer, n->demoted ? DEMOTED_US : n->conf->name_us);
	else if (n->path)
		loop_arm(n->timer, n->conf->path_us);
}

/* A server that was away for longer may have been replaced, and others may already rely on its successor. */
static bool node_may_reuse(const struct node *n)
{
	return n->port && *n->known && instant_diff(clock_boottime(), n->known_at) < n->conf->reuse_us;
}

static bool addresses_have(const struct addresses *a, const struct endpoint *e)
{
	bool found = false;

	for (unsigned i = 0; i < a->count; i++)
		found |= endpoint_equal(&a->item[i], e);
	return found;
}

/* Nobody has listened at the former address for three checks of it: none of its connections has survived. */
static bool node_home_is_gone(const struct node *n)
{
	return !instant_before(clock_boottime(), instant_add(n->home_shut, 3 * n->conf->redial_us));
}

/* The name leads to the former server as well. Daemons that are still connected to that one stay there, so this one must too. */
static bool node_has_strayed(const struct node *n)
{
	const char *run_id = link_run_id(n->links.item[0]);

	return n->named && *n->known && *run_id && strcmp(n->known, run_id) != 0 && !endpoint_equal(&n->home, &n->dialled) &&
	       addresses_have(&n->addresses, &n->home) && !node_home_is_gone(n);
}

/*
 * Whether the sentinels have led to another server than before, under another name or the same. A server that was restarted counts as the same: its marker
 * shows what it has lost. For a server of the previous process only a numeric address proves that.
 */
static bool node_has_another(const struct node *n)
{
	const char *run_id = link_run_id(n->links.item[0]);
	struct addresses number;

	if (!n->sentinel || !n->voted || (*run_id && !strcmp(n->known, run_id)))
		return false;
	return n->home.n ? !endpoint_equal(&n->home, &n->dialled) : n->renamed || !addresses_from_number(n->host, n->port, &number);
}

static void node_on_ready(void *context)
{
	struct node *n = context;
	char where[300] = "";

	if (++n->ready < n->conf->links)
		return;
	if (!links_agree(&n->links) || node_has_strayed(n)) {
		node_fail(n, DEFECT_UNKNOWN_HOST, NODE_SPLIT);
		return;
	}
	if (n->known_only && (strcmp(n->known, link_run_id(n->links.item[0])) != 0 || !node_may_reuse(n))) {
		node_fail(n, n->defect, n->reason);
		return;
	}
	if (node_has_another(n))
		node_be_replaced(n, ANOTHER);
	n->renamed = false;
	n->voted = true;
	node_set_state(n, NODE_UP, "all links are ready");
	n->up_since = clock_boottime();
	n->reason[0] = 0;
	n->demoted = false;
	n->split = n->taken = n->astray = false;
	n->unknown = n->elsewhere = 0;
	n->wrong.defect = n->shut.defect = DEFECT_NONE;
	n->home = n->dialled;
	n->home_shut = INSTANT_NEVER;
	n->cert_ends = link_cert_ends(n->links.item[0]);
	(void)snprintf(n->known, sizeof(n->known), "%s", link_run_id(n->links.item[0]));
	redial_begin(n->redial, &n->home, &n->addresses);
	if (n->subscriber)
		subscriber_open(n->subscriber, (const struct sockaddr *)&n->dialled.name, n->dialled.n);
	if (n->sentinel) {
		sentinel_follow(n->sentinel, true);
		sentinel_where(n->sentinel, where, sizeof(where));
	}
	n->conf->sink->up(n->conf->sink->context, n->index, where);
	if (n->named)
		node_report_name(n);
	node_watch_name(n);
}

static void node_dial(struct node *n)
{
	int rc;

	node_set_state(n, NODE_DIALLING, "an address");
	n->ready = 0;
	n->dialled = n->addresses.item[n->next];
	if (n->path)
		socket_place(n->path, &n->place);
	rc = links_dial(&n->links, &n->dialled);
	if (rc < 0)
		node_fail_there(n, failure_dial_defect((const struct sockaddr *)&n->dialled.name, -rc), failure_errno(-rc));
}

/* Begins an attempt with the first of the known addresses. */
static void node_dial_all(struct node *n)
{
	n->fresh = true;
	n->next = 0;
	node_dial(n);
}

/*
 * If the name leads elsewhere and only a replica is left, the node goes down: a replica gives no votes. While a master answers, name servers whose answers vary
 * must not end its locks. It is only reported that other daemons may use another server.
 */
static void node_follow_name(struct node *n)
{
	char reason[sizeof(n->reason)];

	n->unknown = 0;
	if (addresses_have(&n->addresses, &n->dialled))
		n->elsewhere -= n->elsewhere > 0;
	else
		n->elsewhere = LOOKS_REPORTED;
	if (n->elsewhere < LOOKS_REPORTED || !n->demoted) {
		node_report_name(n);
		return;
	}
	(void)snprintf(reason, sizeof(reason), "%.200s leads to other addresses now", n->host);
	node_leave(n, DEFECT_UNKNOWN_HOST, reason, n->host);
}

/*
 * Unlike a name, a path leads all daemons of this host to the same server. So a server that takes it over is the server from now on: to stay would let two
 * daemons hold one lock. If nobody listens there, nobody else gets a lock, and the connected server goes on.
 */
static void node_follow_path(struct node *n)
{
	char reason[sizeof(n->reason)];

	node_watch_name(n);
	switch (socket_look(n->path, &n->place)) {
	case SOCKET_SAME:
		node_report_path(n, "");
		break;
	case SOCKET_GONE:
		node_report_path(n, "is gone");
		break;
	case SOCKET_DEAD:
		node_report_path(n, "has another file");
		break;
	case SOCKET_TAKEN:
		(void)snprintf(reason, sizeof(reason), "another server has taken over the path %.150s", n->path);
		node_leave(n, DEFECT_UNKNOWN_HOST, reason, n->path);
		break;
	}
}

/* --- where sentinels tell the address -------------------------------------------------------------------------------- */

/* Certificates must have this name. A server at a Unix socket speaks no TLS. */
static void node_expect_name(struct node *n, const char *name)
{
	links_expect(&n->links, name);
	redial_expect(n->redial, name);
	if (n->subscriber)
		subscriber_expect(n->subscriber, &n->conf->link->tls, name);
}

static void node_rename(struct node *n, const char *host, uint16_t port)
{
	if (n->port == port && !strcmp(n->host, host))
		return;
	n->renamed = true;
	resolver_forget(n->lookup);
	n->lookup = NULL;
	n->addresses.count = 0;
	free(n->host);
	n->host = mem_text(host);
	n->port = port;
	node_expect_name(n, n->conf->server_name ? n->conf->server_name : n->host);
}

/*
 * The new name is resolved, or its time is over. If it leads to the connected address, or the last one, it is only another spelling. That address is unknown
 * until this process has been connected.
 */
static void node_follow_sentinels(struct node *n)
{
	if (!n->renamed || !n->home.n)
		return;
	n->renamed = false;
	if (addresses_have(&n->addresses, &n->home)) {
		sentinel_follow(n->sentinel, n->state == NODE_UP);
		if (n->state == NODE_UP && n->demoted)
			loop_arm(n->timer, 0);
		else if (n->state == NODE_UP)
			evtimer_del(n->timer);
		return;
	}
	node_be_replaced(n, n->addresses.count ? ANOTHER : PERHAPS_ANOTHER);
}

/* --- attempts -------------------------------------------------------------------------------------------------------- */

static void node_on_addresses(void *context, const struct addresses *found, enum defect defect, const char *reason)
{
	struct node *n = context;

	n->lookup = NULL;
	if (found->count)
		n->addresses = *found;
	node_follow_sentinels(n);
	if (n->state == NODE_UP && n->named && found->count)
		node_follow_name(n);
	else if (n->state == NODE_UP && n->named)
		node_miss_name(n, defect, reason);
	if (n->state != NODE_RESOLVING)
		return; /* too late for that attempt; the next one uses it */
	evtimer_del(n->timer);
	if (n->addresses.count)
		node_dial_all(n);
	else
		node_fail_there(n, defect, reason);
}

static void node_resolve(struct node *n)
{
	int64_t patience = n->conf->link->connect_timeout_us;

	if (n->addresses.count && patience > PATIENCE_US)
		patience = PATIENCE_US;
	node_set_state(n, NODE_RESOLVING, n->host);
	loop_arm(n->timer, patience);
	if (!n->lookup)
		n->lookup = resolver_ask(n->conf->resolver, n->host, n->port, node_on_addresses, n);
}

static void node_locate(struct node *n)
{
	if (!addresses_are_known(n->path, n->host, n->port, &n->addresses)) {
		node_resolve(n);
		return;
	}
	node_follow_sentinels(n);
	if (n->addresses.count)
		node_dial_all(n);
	else
		node_fail(n, DEFECT_UNREACHED, "the path of the socket is too long");
}

static void node_begin(struct node *n)
{
	if (n->fresh) {
		node_dial(n); /* the next address of this attempt */
	} else if (n->sentinel) {
		node_set_state(n, NODE_RESOLVING, "sentinels");
		sentinel_ask(n->sentinel);
	} else {
		node_locate(n);
	}
}

static void node_on_moved(void *context, const char *host, uint16_t port)
{
	struct node *n = context;

	node_rename(n, host, port);
	if (addresses_are_known(NULL, n->host, n->port, &n->addresses)) {
		node_follow_sentinels(n);
		return;
	}
	loop_arm(n->timer, PATIENCE_US);
	n->lookup = resolver_ask(n->conf->resolver, n->host, n->port, node_on_addresses, n);
}

/*
 * The sentinels have answered. While they name no server, a node that is up keeps its server. After a broken connection, or in the next process, the same
 * server is as good as before. A server that was restarted is not: a replica may have been promoted meanwhile, and nobody here knows.
 */
static void node_on_located(void *context, const char *host, uint16_t port, enum defect defect, const char *reason)
{
	struct node *n = context;

	n->known_only = !host && node_may_reuse(n);
	if (host)
		node_rename(n, host, port);
	else
		node_note(n, defect, reason);
	if (host || n->known_only)
		node_locate(n);
	else
		node_fail(n, n->defect, n->reason);
}

/* A probe, or a refused write, shows a replica. The link that reported it must not be closed here. */
static void node_on_answer(void *context, const struct answer *a)
{
	struct node *n = context;
	bool was = n->demoted;

	if (a->probe && a->class == ANSWER_EXECUTED)
		n->demoted = !span_equal(a->probe->role, SPAN("master"));
	n->demoted |= a->class == ANSWER_REFUSED && a->defect == DEFECT_REPLICA;
	if (n->demoted && !was && n->state == NODE_UP && (n->sentinel || n->named))
		loop_arm(n->timer, 0);
	if (a->probe && a->class == ANSWER_EXECUTED && n->state == NODE_UP)
		node_compare(n, a->probe->run_id, span_of(n->subscriber ? subscriber_run_id(n->subscriber) : ""));
	if (a->probe && a->class == ANSWER_EXECUTED && !a->probe->defect && n->subscriber)
		subscriber_note_published(n->subscriber);
	n->conf->sink->answer(n->conf->sink->context, a);
}

/* Of a node that is up. */
static void node_look_up(struct node *n)
{
	node_watch_name(n);
	if (!n->lookup)
		n->lookup = resolver_ask(n->conf->resolver, n->host, n->port, node_on_addresses, n);
}

static void node_miss_addresses(struct node *n)
{
	node_follow_sentinels(n);
	node_fail_there(n, DEFECT_UNKNOWN_HOST, "the name is not resolved in time");
}

static void node_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct node *n = context;

	(void)fd, (void)what;
	if (n->state == NODE_WAITING)
		node_begin(n);
	else if (n->state == NODE_RESOLVING && n->addresses.count)
		node_dial_all(n);
	else if (n->state == NODE_RESOLVING)
		node_miss_addresses(n);
	else if (n->renamed)
		node_follow_sentinels(n);
	else if (node_is_left_behind(n))
		node_fail(n, DEFECT_REPLICA, "it has become a replica, and new connections reach another server");
	else if (n->state == NODE_UP && n->named)
		node_look_up(n);
	else if (n->state == NODE_UP && n->path)
		node_follow_path(n);
	else if (n->state == NODE_UP)
		node_fail(n, DEFECT_SENTINEL, "it has become a replica: the sentinels are asked again");
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

static void node_make_links(struct node *n)
{
	struct link_sink sink = {
		.context = n,
		.ready = node_on_ready,
		.broken = node_on_broken,
		.script = {.context = n->conf->sink->context, .answer = n->conf->sink->answer},
	};
	const struct script_sink watched = {.context = n, .answer = node_on_answer};
	const struct upstream_sink *to = n->conf->sink;
	const struct redial_sink redial_sink = {.context = n, .tried = node_on_tried, .reached = node_on_reached};
	const struct subscriber_sink subscriber_sink = {.context = to->context, .message = to->message, .subscribed = to->subscribed};

	if (n->sentinel || n->named || n->conf->channel)
		sink.script = watched;
	links_init(&n->links, n->conf->links, n->conf->base, n->conf->link, n->index, &sink);
	if (n->sentinel)
		links_demand_master(&n->links);
	n->redial = redial_new(n->conf->base, n->conf->link, n->conf->redial_us, n->index, &redial_sink);
	if (n->conf->channel)
		n->subscriber = subscriber_new(n->conf->base, &n->conf->link->stream, n->conf->rng, n->index, n->conf->channel, &subscriber_sink);
	if (!n->path)
		node_expect_name(n, n->conf->server_name ? n->conf->server_name : n->host);
}

/* What the previous process knew of the master: its address, unless that was too long to hand over, and its run id. */
static void node_restore(struct node *n, const struct upstream_address *from)
{
	(void)snprintf(n->known, sizeof(n->known), "%s", from->run_id ? from->run_id : "");
	n->known_at = from->answered_at;
	n->voted = *n->known || n->port;
	if (n->port)
		sentinel_restore(n->sentinel, n->host, n->port);
}

struct node *node_new(const struct node_conf *conf, unsigned index, const struct upstream_address *address)
{
	struct node *n = mem_alloc(sizeof(*n));
	const struct sentinel_sink sentinel_sink = {.context = n, .located = node_on_located, .moved = node_on_moved, .trouble = node_on_sentinels};

	n->conf = conf;
	n->index = index;
	n->label = mem_text(address->label ? address->label : "");
	n->path = mem_text(address->path);
	n->host = mem_text(address->host ? address->host : "");
	n->port = address->port;
	if (address->master)
		n->sentinel = sentinel_new(conf->sentinel, address, &sentinel_sink);
	if (n->sentinel)
		node_restore(n, address);
	n->home_shut = INSTANT_NEVER;
	n->cert_ends = INT64_MAX;
	n->named = !n->sentinel && !addresses_are_known(n->path, n->host, n->port, &n->addresses);
	n->timer = loop_timer(conf->base, node_on_timer, n);
	backoff_init(&n->backoff, PAUSE_FIRST_US, PAUSE_CAP_US);
	node_make_links(n);
	loop_arm(n->timer, 0);
	return n;
}

void node_free(struct node *n)
{
	if (!n)
		return;
	resolver_forget(n->lookup);
	sentinel_free(n->sentinel);
	links_release(&n->links);
	redial_free(n->redial);
	subscriber_free(n->subscriber);
	event_free(n->timer);
	free(n->label);
	free(n->path);
	free(n->host);
	free(n);
}

bool node_call(struct node *n, const struct call *call, uint64_t hash)
{
	bool first = call->kind == CALL_PROBE || call->kind == CALL_MARK;

	if (n->state != NODE_UP)
		return false;
	link_call(n->links.item[first ? 0 : hash % n->links.count], call, hash);
	return true;
}

/* Whether calls would reach a server that other daemons have already left. The regular check of the path may come too late for them. */
static bool node_is_taken(struct node *n, struct instant now)
{
	if (!n->path || n->taken || instant_diff(now, n->looked_at) < TAKEN_US)
		return n->taken;
	n->looked_at = now;
	n->taken = socket_look(n->path, &n->place) == SOCKET_TAKEN;
	if (n->taken)
		loop_arm(n->timer, 0);
	return n->taken;
}

bool node_flush(struct node *n, struct instant now, bool at_once)
{
	return n->state == NODE_UP && !node_is_taken(n, now) && links_flush(&n->links, now, at_once);
}

bool node_waits(const struct node *n)
{
	return links_wait(&n->links);
}

const char *node_reason(const struct node *n)
{
	return n->reason;
}

int64_t node_cert_ends(const struct node *n)
{
	return n->cert_ends;
}

struct upstream_failures node_failures(const struct node *n)
{
	return n->failures;
}

/* --- a restart ------------------------------------------------------------------------------------------------------- */

bool node_is_quiet(const struct node *n)
{
	bool quiet = true;

	for (unsigned i = 0; i < n->links.count; i++)
		quiet &= n->state != NODE_UP || link_is_quiet(n->links.item[i]);
	return quiet;
}
