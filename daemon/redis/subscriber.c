/* SPDX-License-Identifier: BSD-2-Clause */
/* One subscriber connection. Every failure leads to a pause and a new attempt, and never affects the node. */
#include "daemon/redis/subscriber.h"
#include "daemon/base/backoff.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/handshake.h"
#include "daemon/redis/loop.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>

#define PAUSE_US     (500 * MSEC)
#define PAUSE_CAP_US (30 * SEC) /* while the server refuses: only an operator can change that */
#define VAIN_REPORTED    2 /* attempts without an answer: the first may be the end of the server, which the node notices itself */
#define ENDS_MOST    3 /* subscriptions that ended within STEADY_US: too many. Reported until one lasts for that time */
#define STEADY_US    (60 * SEC)
#define ASK_US       (5 * SEC) /* between two SUBSCRIBEs: no answer means a dead connection; a refusal means that a new one would be refused */
#define UNDELIVERED_MOST 8 /* messages, one a second, that did not arrive: a stopped server or daemon misses fewer */
#define RUN_ID_MAX   48

struct subscriber {
	struct event_base *base;
	const struct stream_conf *conf;
	struct subscriber_sink sink;
	struct rng *rng;
	struct backoff backoff; /* of attempts after a refusal */
	unsigned node;
	char *channel;
	struct ssl_ctx_st *const *tls; /* NULL: plain */
	const char *name;
	struct sockaddr_storage address;
	socklen_t address_n; /* 0: closed */
	struct bufferevent *bev;
	struct event *timer; /* without a connection: end of the pause; else: the next SUBSCRIBE */
	struct resp resp;
	char run_id[RUN_ID_MAX]; /* of the server; "": not known */
	bool naming;    /* the answer of INFO, with the run id, is awaited */
	bool listening; /* the subscription is confirmed */
	bool asked;     /* … and another SUBSCRIBE is unanswered */
	bool refused;   /* it was reported that there is no subscription */
	bool unsteady;  /* … because its subscriptions end again and again */
	struct instant since;            /* when the last subscription was confirmed */
	struct instant ended[ENDS_MOST]; /* when the last ones ended; 0: never */
	unsigned undelivered; /* how often the server has published over this connection since the last message */
	unsigned vain;  /* attempts in a row that were neither accepted nor refused */
};

static void subscriber_hang_up(struct subscriber *e)
{
	if (e->bev)
		bufferevent_free(e->bev);
	e->bev = NULL;
	e->listening = false;
	e->asked = false;
	e->run_id[0] = 0;
	resp_reset(&e->resp);
}

static void subscriber_end(struct subscriber *e, const char *why, int64_t pause_us)
{
	char quoted[320];

	log_event(LOG_DEBUG, "subscriber", "node=%u state=closed why=%s", e->node, log_quote(why, quoted, sizeof(quoted)));
	subscriber_hang_up(e);
	loop_arm(e->timer, pause_us);
}

/* Whether there were too many ends. */
static bool subscriber_note_end(struct subscriber *e)
{
	struct instant *ended = e->ended;

	memmove(ended, ended + 1, (ENDS_MOST - 1) * sizeof(*ended));
	ended[ENDS_MOST - 1] = clock_boottime();
	return ended[0].us && instant_diff(ended[ENDS_MOST - 1], ended[0]) < STEADY_US;
}

static void subscriber_fail(struct subscriber *e, enum defect defect, const char *why)
{
	bool often = e->listening && subscriber_note_end(e), vain = !e->listening && ++e->vain >= VAIN_REPORTED;
	const char *what = often ? "its subscription ends again and again" : e->bev ? "it does not carry out SUBSCRIBE" : "no connection for SUBSCRIBE";
	char text[128];

	subscriber_end(e, why, PAUSE_US);
	if (!vain && !often)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", what, why);
	e->refused = true;
	e->unsteady |= often;
	e->sink.subscribed(e->sink.context, e->node, often ? DEFECT_BREAKS : defect, text);
}

static void subscriber_report_refusal(struct subscriber *e)
{
	struct span text = resp_text(&e->resp, &e->resp.value[0]);
	char reason[128], why[256];

	handshake_reason(text, e->conf->password, reason, sizeof(reason));
	(void)snprintf(why, sizeof(why), "it refuses SUBSCRIBE: %s%s", reason,
		       failure_is(text, "NOPERM") ? "; permit +subscribe and &redlockd:*, see REDIS ACCESS in redlockd(8)" : "");
	e->refused = true;
	e->unsteady = false; /* the next one that is accepted is reported */
	e->sink.subscribed(e->sink.context, e->node, failure_defect(text), why);
}

/* An error answers AUTH or SUBSCRIBE, or greets one client too many. */
static void subscriber_refuse(struct subscriber *e)
{
	e->vain = 0;
	subscriber_report_refusal(e);
	subscriber_end(e, "refused", backoff_next(&e->backoff, e->rng));
}

/* An error answers a repeated SUBSCRIBE. The subscription lasts. An error of a server that is only busy soon passes. */
static void subscriber_doubt(struct subscriber *e)
{
	e->asked = false;
	if (failure_is(resp_text(&e->resp, &e->resp.value[0]), "NOPERM"))
		subscriber_report_refusal(e);
}

/* INFO is refused. The node learns that from its own probes, and SUBSCRIBE may be permitted. */
static bool subscriber_may_not_ask(struct subscriber *e)
{
	bool refused = e->naming && failure_is(resp_text(&e->resp, &e->resp.value[0]), "NOPERM");

	e->naming &= !refused;
	return refused;
}

static void subscriber_report_well(struct subscriber *e)
{
	if (e->refused)
		e->sink.subscribed(e->sink.context, e->node, DEFECT_NONE, "");
	e->refused = e->unsteady = false;
}

static void subscriber_report_undelivered(struct subscriber *e)
{
	e->refused = true;
	e->sink.subscribed(e->sink.context, e->node, DEFECT_PROXY, "it carries out SUBSCRIBE, but what it publishes does not arrive");
}

static void subscriber_accept(struct subscriber *e)
{
	if (!e->listening) {
		e->since = clock_boottime();
		e->undelivered = 0;
	}
	e->listening = true;
	e->asked = false;
	e->vain = 0;
	backoff_reset(&e->backoff);
	if (e->undelivered >= UNDELIVERED_MOST)
		subscriber_report_undelivered(e);
	else if (!e->unsteady || instant_diff(clock_boottime(), e->since) >= STEADY_US)
		subscriber_report_well(e);
}

/* begin: the beginning of the name, which its key lacks: see SLOT_PREFIX and NAME_ESCAPE. */
static void subscriber_pass_name(struct subscriber *e, char what, struct span begin, struct span rest)
{
	char name[SLOT_NAME_MAX];

	if (begin.n + rest.n > sizeof(name))
		return;
	memcpy(name, begin.p, begin.n);
	memcpy(name + begin.n, rest.p, rest.n);
	e->sink.message(e->sink.context, e->node, what, (struct span){name, begin.n + rest.n});
}

/* {"message", channel, what + key}; 'i' and 'I': what + text; of a probe: nothing */
static void subscriber_pass(struct subscriber *e)
{
	struct span payload = resp_text(&e->resp, &e->resp.value[3]), prefix = span_of(e->conf->keys.prefix), slots = span_of(e->conf->keys.slots);
	char what;

	e->undelivered = 0;
	if (payload.n < 1)
		return;
	what = payload.p[0];
	payload = (struct span){payload.p + 1, payload.n - 1};
	if (what == 'i' || what == 'I') {
		e->sink.message(e->sink.context, e->node, what, payload);
		return;
	}
	if (span_starts(payload, slots)) {
		subscriber_pass_name(e, what, SPAN(SLOT_PREFIX), (struct span){payload.p + slots.n, payload.n - slots.n});
		return;
	}
	if (!span_starts(payload, prefix))
		return;
	payload = (struct span){payload.p + prefix.n, payload.n - prefix.n};
	if (what != 't' && payload.n > 0 && payload.p[0] == NAME_ESCAPE) /* 't' is about a queue */
		subscriber_pass_name(e, what, (struct span){payload.p, 1}, payload);
	else
		e->sink.message(e->sink.context, e->node, what, payload);
}

/* Takes the run id from the answer of INFO. */
static void subscriber_name(struct subscriber *e, struct span info)
{
	static const char field[] = "\nrun_id:";
	const char *at = info.n ? memmem(info.p, info.n, field, strlen(field)) : NULL;
	size_t n = 0;

	e->naming = false;
	if (!at)
		return;
	at += strlen(field);
	while (n < sizeof(e->run_id) - 1 && at + n < info.p + info.n && at[n] > ' ')
		n++;
	memcpy(e->run_id, at, n);
	e->run_id[n] = 0;
}

/* Handles one reply. */
static int subscriber_process(void *context)
{
	struct subscriber *e = context;
	const struct resp *r = &e->resp;
	struct span kind;

	if (resp_is_error(r) && !e->asked && !subscriber_may_not_ask(e)) {
		subscriber_refuse(e);
		return 0;
	}
	if (r->value[0].type == RESP_STRING)
		subscriber_name(e, resp_text(r, &r->value[0]));
	if (resp_is_error(r) && e->asked)
		subscriber_doubt(e);
	if (r->value[0].type != RESP_ARRAY)
		return 1; /* the OK of AUTH, or INFO */
	if (r->value[0].children < 2 || r->value[1].type != RESP_STRING)
		return -1;
	kind = resp_text(r, &r->value[1]);
	if (span_equal(kind, SPAN("message")) && r->count == 4 && r->value[3].type == RESP_STRING)
		subscriber_pass(e);
	else if (span_equal(kind, SPAN("subscribe")))
		subscriber_accept(e);
	return 1;
}

static void subscriber_on_read(struct bufferevent *bev, void *context)
{
	struct subscriber *e = context;

	if (loop_read(bev, &e->resp, subscriber_process, e) < 0)
		subscriber_fail(e, DEFECT_NO_REDIS, FAILURE_GARBAGE);
}

static void subscriber_on_event(struct bufferevent *bev, short what, void *context)
{
	struct subscriber *e = context;
	const char *reason;

	if (what & BEV_EVENT_CONNECTED)
		return;
	reason = loop_tls_reason(bev);
	if (reason)
		subscriber_fail(e, DEFECT_TLS, reason);
	else
		subscriber_fail(e, DEFECT_CLOSED, what & BEV_EVENT_EOF ? "closed by the server" : "connection lost");
}

static void subscriber_greet(struct subscriber *e)
{
	struct buf out;

	buf_init(&out);
	if (e->conf->password)
		handshake_auth(&out, e->conf->user, e->conf->password);
	handshake_put(&out, "INFO server");
	e->naming = true;
	handshake_put(&out, "SUBSCRIBE %s", e->channel);
	loop_send(e->bev, &out);
}

static void subscriber_dial(struct subscriber *e)
{
	const struct sockaddr *to = (const struct sockaddr *)&e->address;
	int error;

	e->bev = loop_socket(e->base, to->sa_family, e->tls, e->name);
	if (!e->bev) {
		subscriber_fail(e, failure_errno_defect(errno), failure_errno(errno));
		return;
	}
	bufferevent_setcb(e->bev, subscriber_on_read, NULL, subscriber_on_event, e);
	bufferevent_enable(e->bev, EV_READ | EV_WRITE);
	subscriber_greet(e);
	if (bufferevent_socket_connect(e->bev, to, (int)e->address_n) == 0) {
		loop_arm(e->timer, ASK_US);
		return;
	}
	error = errno;
	subscriber_hang_up(e);
	subscriber_fail(e, failure_dial_defect(to, error), failure_errno(error));
}

static void subscriber_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct subscriber *e = context;
	struct buf out;

	(void)fd, (void)what;
	if (!e->bev) {
		subscriber_dial(e);
	} else if (e->asked || !e->listening) {
		subscriber_fail(e, DEFECT_SILENT, "no answer");
	} else {
		buf_init(&out);
		handshake_put(&out, "SUBSCRIBE %s", e->channel);
		loop_send(e->bev, &out);
		e->asked = true;
		loop_arm(e->timer, ASK_US);
	}
}

struct subscriber *subscriber_new(struct event_base *base, const struct stream_conf *conf, struct rng *rng, unsigned node, const char *channel,
				  const struct subscriber_sink *sink)
{
	struct subscriber *e = mem_alloc(sizeof(*e));

	e->base = base;
	e->conf = conf;
	e->sink = *sink;
	e->rng = rng;
	backoff_init(&e->backoff, PAUSE_US, PAUSE_CAP_US);
	e->node = node;
	e->channel = mem_text(channel);
	e->timer = loop_timer(base, subscriber_on_timer, e);
	resp_init(&e->resp);
	return e;
}

void subscriber_expect(struct subscriber *e, struct ssl_ctx_st *const *context, const char *name)
{
	e->tls = context;
	e->name = name;
}

void subscriber_free(struct subscriber *e)
{
	if (!e)
		return;
	subscriber_close(e);
	event_free(e->timer);
	resp_release(&e->resp);
	free(e->channel);
	free(e);
}

const char *subscriber_run_id(const struct subscriber *e)
{
	return e->run_id;
}

void subscriber_note_published(struct subscriber *e)
{
	if (e->listening && !e->asked && ++e->undelivered == UNDELIVERED_MOST)
		subscriber_report_undelivered(e);
}

void subscriber_open(struct subscriber *e, const struct sockaddr *address, socklen_t n)
{
	subscriber_close(e);
	memcpy(&e->address, address, n);
	e->address_n = n;
	subscriber_dial(e);
}

void subscriber_close(struct subscriber *e)
{
	subscriber_hang_up(e);
	evtimer_del(e->timer);
	e->address_n = 0;
}
