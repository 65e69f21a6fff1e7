/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of questions: all sentinels are asked at once, and the majority decides. */
#include "daemon/redis/sentinel.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/handshake.h"
#include "daemon/redis/loop.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a post: one sentinel of a master ------------------------------------------------------------------------------------- */

/* The callback may call all but post_free. The texts are borrowed during the call. */
struct post_sink {
	void *context;
	void (*located)(void *context, const char *host, uint16_t port);
	void (*failed)(void *context, enum defect defect, const char *reason, bool unaware); /* unaware: it answered that it does not know this master */
};

/* Asked over a connection that stays until it fails. Each question is answered once, from the loop, never from inside a function here. */
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

static void post_close(struct post *p)
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

static void post_ask(struct post *p);

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
	p->sink.located(p->sink.context, host, port);
}

/* Handles one reply. 0: the connection was given up, or the question is answered. */
static int post_process(void *context)
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

	if (loop_read(bev, &p->resp, post_process, p) < 0)
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

/* not while a question is unanswered */
static void post_ask(struct post *p)
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

/* conf and master are borrowed, and must outlive the post. */
static struct post *post_new(const struct sentinel_conf *conf, const char *master, const struct upstream_host *at, const struct post_sink *sink)
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

static void post_free(struct post *p)
{
	post_close(p);
	resolver_forget(p->lookup);
	event_free(p->timer);
	resp_release(&p->resp);
	free(p->host);
	free(p);
}

/* --- rounds --------------------------------------------------------------------------------------------------------- */

struct item {
	struct sentinel *sentinel;
	struct post *post;
	char *label;
	bool pending;
	enum defect defect;
	char reason[96]; /* why it named no master in this round */
	bool unaware;    /* … that is, it does not know this master */
	char host[MASTER_HOST_MAX];
	uint16_t port; /* 0: it named none */
};

struct sentinel {
	const struct sentinel_conf *conf;
	struct sentinel_sink sink;
	char *master;
	struct item item[SENTINELS_MAX];
	unsigned count, pending;
	struct event *timer; /* between rounds, while the master is followed */
	bool asked;          /* a sentinel_ask waits for the answer */
	bool followed;
	char host[MASTER_HOST_MAX]; /* the master that was last reported */
	uint16_t port;
};

static void where_write(char *out, size_t size, const char *host, uint16_t port)
{
	(void)snprintf(out, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* A lack of descriptors comes first, then a refused login: as long as they last, nothing else helps. */
static enum defect sentinel_defect(const struct sentinel *s)
{
	enum defect found = DEFECT_SENTINEL;

	for (unsigned i = 0; i < s->count; i++) {
		enum defect defect = s->item[i].defect;

		if (defect == DEFECT_DESCRIPTORS || (defect == DEFECT_SENTINEL_AUTH && found == DEFECT_SENTINEL))
			found = defect;
	}
	return found;
}

static void names_join(const struct sentinel *s, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "the sentinels do not agree where %s is", s->master);
	char where[MASTER_HOST_MAX + 16];
	const char *mark = ":";

	for (unsigned i = 0; i < s->count && n < size; i++) {
		if (!s->item[i].port)
			continue;
		where_write(where, sizeof(where), s->item[i].host, s->item[i].port);
		n += (size_t)snprintf(out + n, size - n, "%s %s names %s", mark, s->item[i].label, where);
		mark = ";";
	}
}

static bool is_named(const struct item *item, const char *host, uint16_t port)
{
	return item->port && item->port == port && !strcmp(item->host, host);
}

/* The master that most sentinels name; among equals, the first in the order of the configuration. NULL: none names any. */
static const struct item *sentinel_leader(const struct sentinel *s, unsigned *ret_votes, unsigned *ret_answered)
{
	const struct item *leader = NULL;

	*ret_votes = *ret_answered = 0;
	for (unsigned i = 0; i < s->count; i++) {
		unsigned votes = 0;

		for (unsigned k = 0; k < s->count; k++)
			votes += is_named(&s->item[k], s->item[i].host, s->item[i].port);
		*ret_answered += s->item[i].port != 0;
		if (votes > *ret_votes) {
			*ret_votes = votes;
			leader = &s->item[i];
		}
	}
	return leader;
}

void sentinel_restore(struct sentinel *s, const char *host, uint16_t port)
{
	(void)snprintf(s->host, sizeof(s->host), "%s", host);
	s->port = port;
}

/* Two majorities have a sentinel in common: no two daemons go to two masters. */
static bool sentinel_decides(const struct sentinel *s, unsigned votes)
{
	return votes > s->count / 2;
}

/* In the order of the configuration, not of the answers, so that the same failure has the same text. */
static void reasons_join(const struct sentinel *s, unsigned answered, char *out, size_t size)
{
	const char *mark = ":";
	size_t n;

	if (answered)
		n = (size_t)snprintf(out, size, "too few sentinels (%u of %u) tell where %s is", answered, s->count, s->master);
	else
		n = (size_t)snprintf(out, size, "no sentinel tells where %s is", s->master);
	for (unsigned i = 0; i < s->count && n < size; i++) {
		if (s->item[i].port)
			continue;
		n += (size_t)snprintf(out + n, size - n, "%s %s %s", mark, s->item[i].label, s->item[i].reason);
		mark = ";";
	}
}

static bool is_unknown(const struct sentinel *s)
{
	bool unaware = true;

	for (unsigned i = 0; i < s->count; i++)
		unaware &= s->item[i].unaware;
	return unaware;
}

/* Why the sentinels do not name the master, or would not report a fail-over. "": most name it, and the others do not answer. */
static void sentinel_explain(const struct sentinel *s, const struct item *leader, unsigned votes, unsigned answered, char *out, size_t size)
{
	char where[MASTER_HOST_MAX + 16];

	*out = '\0';
	if (is_unknown(s)) {
		(void)snprintf(out, size, "no sentinel knows a master named %s", s->master);
	} else if (votes < answered) {
		names_join(s, out, size);
	} else if (sentinel_decides(s, votes)) {
		return;
	} else if (leader && s->port && !is_named(leader, s->host, s->port)) {
		where_write(where, sizeof(where), leader->host, leader->port);
		(void)snprintf(out, size, "the sentinels that answer name another master (%s), but they are too few (%u of %u)", where, answered, s->count);
	} else {
		reasons_join(s, answered, out, size);
	}
}

static void sentinel_answer(struct sentinel *s, const struct item *leader, unsigned votes, unsigned answered)
{
	char reason[512];

	s->asked = false;
	if (sentinel_decides(s, votes)) {
		sentinel_restore(s, leader->host, leader->port);
		s->sink.located(s->sink.context, s->host, s->port, DEFECT_NONE, "");
		return;
	}
	sentinel_explain(s, leader, votes, answered, reason, sizeof(reason));
	s->sink.located(s->sink.context, NULL, 0, sentinel_defect(s), reason);
}

static void sentinel_move(struct sentinel *s, const struct item *to)
{
	sentinel_follow(s, false);
	sentinel_restore(s, to->host, to->port);
	s->sink.moved(s->sink.context, s->host, s->port);
}

static void sentinel_report(const struct sentinel *s, const struct item *leader, unsigned votes, unsigned answered)
{
	char reason[512];

	sentinel_explain(s, leader, votes, answered, reason, sizeof(reason));
	if (s->sink.trouble)
		s->sink.trouble(s->sink.context, *reason ? sentinel_defect(s) : DEFECT_NONE, reason);
}

/* A sentinel has answered, or failed. A majority need not wait for the rest. */
static void sentinel_weigh(struct sentinel *s)
{
	unsigned votes, answered;
	const struct item *leader = sentinel_leader(s, &votes, &answered);

	if (s->pending && !sentinel_decides(s, votes))
		return;
	if (s->asked)
		sentinel_answer(s, leader, votes, answered);
	else if (s->followed && sentinel_decides(s, votes) && !is_named(leader, s->host, s->port))
		sentinel_move(s, leader);
	else if (s->followed && !s->pending)
		sentinel_report(s, leader, votes, answered);
	if (s->followed && !s->pending)
		loop_arm(s->timer, s->conf->poll_us);
}

static void item_end(struct item *i)
{
	i->pending = false;
	i->sentinel->pending--;
	sentinel_weigh(i->sentinel);
}

static void item_on_master(void *context, const char *host, uint16_t port)
{
	struct item *i = context;

	(void)snprintf(i->host, sizeof(i->host), "%s", host);
	i->port = port;
	item_end(i);
}

static void item_on_failed(void *context, enum defect defect, const char *reason, bool unaware)
{
	struct item *i = context;

	(void)snprintf(i->reason, sizeof(i->reason), "%s", reason);
	i->defect = defect;
	i->unaware = unaware;
	item_end(i);
}

/* A sentinel that still owes its answer is not asked again. */
static void round_begin(struct sentinel *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct item *item = &s->item[i];

		if (item->pending)
			continue;
		item->pending = true;
		item->unaware = false;
		item->defect = DEFECT_NONE;
		item->port = 0;
		s->pending++;
		post_ask(item->post);
	}
}

static void sentinel_on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	round_begin(context);
}

void sentinel_ask(struct sentinel *s)
{
	s->asked = true;
	evtimer_del(s->timer);
	round_begin(s);
}

void sentinel_follow(struct sentinel *s, bool on)
{
	s->followed = on;
	evtimer_del(s->timer);
	if (on && !s->pending)
		loop_arm(s->timer, s->conf->poll_us);
}

void sentinel_where(const struct sentinel *s, char *out, size_t size)
{
	where_write(out, size, s->host, s->port);
}

struct sentinel *sentinel_new(const struct sentinel_conf *conf, const struct upstream_address *address, const struct sentinel_sink *sink)
{
	struct sentinel *s = mem_alloc(sizeof(*s));

	s->conf = conf;
	s->sink = *sink;
	s->master = mem_text(address->master);
	for (; s->count < address->sentinels && s->count < SENTINELS_MAX; s->count++) {
		const struct upstream_host *at = &address->sentinel[s->count];
		struct item *item = &s->item[s->count];
		const struct post_sink post_sink = {.context = item, .located = item_on_master, .failed = item_on_failed};

		item->sentinel = s;
		item->post = post_new(conf, s->master, at, &post_sink);
		if (asprintf(&item->label, strchr(at->host, ':') ? "[%s]:%u" : "%s:%u", at->host, at->port) < 0)
			mem_exhausted();
	}
	s->timer = loop_timer(conf->base, sentinel_on_timer, s);
	return s;
}

void sentinel_free(struct sentinel *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		post_free(s->item[i].post);
		free(s->item[i].label);
	}
	event_free(s->timer);
	free(s->master);
	free(s);
}
