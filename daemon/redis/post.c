/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection. A failure closes it, and answers the question if there is one. */
#include "daemon/redis/post.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/handshake.h"
#include "daemon/redis/loop.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct post {
	const struct sentinel_conf *conf;
	const char *master;
	struct post_sink sink;
	char *host;
	uint16_t port;
	unsigned turn;           /* which of its addresses to use next */
	struct bufferevent *bev; /* NULL: no connection */
	struct lookup *lookup;   /* under way; each takes a thread, so a question that comes meanwhile waits for the same one */
	struct event *timer; /* the limit of the question */
	struct resp resp;
	bool asked;        /* a question is unanswered */
	bool again;        /* … over a connection that has answered before, and may have ended since: then a new one is tried */
	bool greeting;     /* AUTH is not answered yet */
	int fault;         /* errno, found while asking, for the timer to report; 0: none */
};

void post_close(struct post *p)
{
	if (p->bev)
		bufferevent_free(p->bev);
	p->bev = NULL;
	evtimer_del(p->timer);
	p->asked = false;
	p->again = false;
	p->greeting = false;
	p->fault = 0;
	resp_reset(&p->resp);
}

static void post_give_up(struct post *p, enum defect defect, const char *reason, bool unaware)
{
	bool asked = p->asked;

	post_close(p);
	if (asked)
		p->sink.failed(p->sink.context, defect, reason, unaware);
}

static void post_fail(struct post *p, const char *reason)
{
	post_give_up(p, DEFECT_SENTINEL, reason, false);
}

static void post_fail_by(struct post *p, int error)
{
	post_give_up(p, failure_errno_defect(error), failure_errno(error), false);
}

/* For an error that shows at once: the timer reports it. */
static void post_fail_soon(struct post *p, int error)
{
	p->fault = error;
	loop_arm(p->timer, 0);
}

/* --- receiving ------------------------------------------------------------------------------------------------------- */

static bool is_of_credentials(enum defect defect)
{
	return defect == DEFECT_AUTH || defect == DEFECT_PASSWORD || defect == DEFECT_NO_PASSWORD || defect == DEFECT_PERMISSION;
}

static void post_refuse(struct post *p)
{
	struct span text = resp_text(&p->resp, &p->resp.value[0]);
	enum defect defect = is_of_credentials(failure_defect(text)) ? DEFECT_SENTINEL_AUTH : DEFECT_SENTINEL;
	char quoted[96], reason[128];

	handshake_reason(text, p->conf->password, quoted, sizeof(quoted));
	(void)snprintf(reason, sizeof(reason), "refuses: %s", quoted);
	post_give_up(p, defect, span_starts(text, SPAN("ERR unknown command")) ? "is no sentinel" : reason, false);
}

/* 0: the text is no port. */
static uint16_t port_of(struct span text)
{
	unsigned port = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || port > UINT16_MAX)
			return 0;
		port = 10 * port + (unsigned)(text.p[i] - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

static bool host_take(struct span text, char ret_host[MASTER_HOST_MAX])
{
	if (!text.n || text.n >= MASTER_HOST_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] > '~')
			return false;
	memcpy(ret_host, text.p, text.n);
	ret_host[text.n] = '\0';
	return true;
}

static void post_take_address(struct post *p)
{
	const struct resp *r = &p->resp;
	char host[MASTER_HOST_MAX];
	uint16_t port = 0;

	if (p->asked && r->count == 3 && r->value[1].type == RESP_STRING && r->value[2].type == RESP_STRING &&
	    host_take(resp_text(r, &r->value[1]), host))
		port = port_of(resp_text(r, &r->value[2]));
	if (!port) {
		post_fail(p, FAILURE_GARBAGE);
		return;
	}
	p->asked = false;
	evtimer_del(p->timer);
	p->sink.told(p->sink.context, host, port);
}

/* Handles one reply. 0: the connection was given up, or the question is answered. */
static int post_hear(void *context)
{
	struct post *p = context;

	if (!resp_is_error(&p->resp) && p->greeting) {
		p->greeting = false;
		return 1; /* the OK of AUTH */
	}
	if (resp_is_error(&p->resp))
		post_refuse(p);
	else if (p->resp.value[0].type == RESP_NIL)
		post_give_up(p, DEFECT_SENTINEL, "knows no such master", true);
	else
		post_take_address(p);
	return 0;
}

static void post_on_read(struct bufferevent *bev, void *context)
{
	struct post *p = context;

	if (loop_read(bev, &p->resp, post_hear, p) < 0)
		post_fail(p, FAILURE_GARBAGE);
}

static void post_on_event(struct bufferevent *bev, short what, void *context)
{
	struct post *p = context;
	int error = EVUTIL_SOCKET_ERROR();
	const char *why;
	char reason[128];

	if (what & BEV_EVENT_CONNECTED)
		return;
	why = loop_tls_reason(bev);
	if (p->asked && p->again) {
		post_close(p);
		post_ask(p);
	} else if (why) {
		(void)snprintf(reason, sizeof(reason), "fails in TLS: %s", why);
		post_fail(p, reason);
	} else if (what & BEV_EVENT_EOF || !error) {
		post_fail(p, "hung up");
	} else {
		post_fail_by(p, error);
	}
}

/* --- asking ---------------------------------------------------------------------------------------------------------- */

static void post_question(struct post *p, bool greet)
{
	struct buf out;

	buf_init(&out);
	p->greeting = greet && p->conf->password;
	if (p->greeting)
		handshake_auth(&out, p->conf->user, p->conf->password);
	handshake_put(&out, "SENTINEL get-master-addr-by-name %s", p->master);
	loop_send(p->bev, &out);
}

static void post_connect(struct post *p, const struct addresses *found)
{
	const struct endpoint *to = &found->item[p->turn++ % found->count];

	p->bev = loop_socket(p->conf->base, to->name.ss_family, p->conf->tls, p->conf->server_name ? p->conf->server_name : p->host);
	if (!p->bev) {
		post_fail_soon(p, errno);
		return;
	}
	bufferevent_setcb(p->bev, post_on_read, NULL, post_on_event, p);
	bufferevent_enable(p->bev, EV_READ | EV_WRITE);
	post_question(p, true);
	if (bufferevent_socket_connect(p->bev, (const struct sockaddr *)&to->name, (int)to->n) < 0)
		post_fail_soon(p, errno);
}

static void post_on_addresses(void *context, const struct addresses *found, enum defect defect, const char *reason)
{
	struct post *p = context;

	p->lookup = NULL;
	if (!p->asked)
		return; /* too late for that question; the next one resolves the name again */
	if (found->count)
		post_connect(p, found);
	else
		post_give_up(p, defect, reason, false);
}

void post_ask(struct post *p)
{
	struct addresses number;

	p->asked = true;
	loop_arm(p->timer, p->conf->timeout_us);
	p->again = p->bev != NULL;
	if (p->bev)
		post_question(p, false);
	else if (addresses_from_number(p->host, p->port, &number))
		post_connect(p, &number);
	else if (!p->lookup)
		p->lookup = resolver_ask(p->conf->resolver, p->host, p->port, post_on_addresses, p);
}

static void post_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct post *p = context;
	char reason[48];

	(void)fd, (void)what;
	(void)snprintf(reason, sizeof(reason), "does not answer within %lld ms", (long long)(p->conf->timeout_us / MSEC));
	if (p->fault)
		post_fail_by(p, p->fault);
	else
		post_fail(p, reason);
}

struct post *post_new(const struct sentinel_conf *conf, const char *master, const struct upstream_host *at, const struct post_sink *sink)
{
	struct post *p = mem_alloc(sizeof(*p));

	p->conf = conf;
	p->master = master;
	p->sink = *sink;
	p->host = mem_text(at->host);
	p->port = at->port;
	p->timer = loop_timer(conf->base, post_on_timer, p);
	resp_init(&p->resp);
	return p;
}

void post_free(struct post *p)
{
	post_close(p);
	resolver_forget(p->lookup);
	event_free(p->timer);
	resp_release(&p->resp);
	free(p->host);
	free(p);
}
