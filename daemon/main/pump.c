/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pump between the sockets and the service. It turns the callbacks of net and upstream into events, and carries out the effects. It must never
 * decide anything. Effects are carried out in order as soon as a step ends; bytes and calls leave at the end of the loop pass.
 */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/net/carry.h"
#include "daemon/restart/records.h"

#include <stdio.h>
#include <string.h>

#define PASS_CALLS 256           /* calls of the memory store that one pass carries out … */
#define CALLS_US   (1 * MSEC)    /* … and how long it does so: a call may list thousands of jobs, and its answer may concern thousands of waiters */
#define SHARES_MOST 10           /* so many times that, at the end of a pass that took as long */
#define ANSWERS_US (1 * MSEC)    /* how long one pass handles answers of Redis servers: a reply has up to 256, and each may concern thousands */
#define PASS_US    INT64_C(100)  /* how long events of one pass are handled before answers leave */

/* --- HTTP on a port of the line protocol: a browser, or a program with the wrong port, gets an answer that it understands --- */

#define TEXT                                                                                        \
	"This port speaks the line protocol of redlock-protocol(7), not HTTP.\n"                    \
	"The web listener is another one: its address is listen.http in redlockd.yaml(5).\n"

static void wrong_port_answer(struct daemon *d, uint64_t session)
{
	char answer[512];
	int n = snprintf(answer, sizeof(answer),
	                 "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
	                 strlen(TEXT), TEXT);

	net_send(d->net, session, answer, (size_t)n);
}

/* --- events --- */

/* The wall clock is read once a pass. */
static void pump_set_time(struct daemon *d, struct event *event, struct instant now)
{
	if (!d->wall_known) {
		d->wall_ahead_us = clock_wall_us() - now.us;
		d->begun = now;
	}
	d->wall_known = true;
	event->now = now;
	event->wall_us = now.us + d->wall_ahead_us;
}

/* Before a record says that a session has a job, the file of jobs says that the job is leased. */
static void pump_write_jobs(struct daemon *d)
{
	if (d->memory)
		(void)memory_write_jobs(d->memory); /* lasting_tick() tells of an error */
}

static void pump_write(struct daemon *d)
{
	pump_write_jobs(d);
	if (journal_has_news(&d->journal))
		journal_write(&d->journal, clock_boottime());
}

static void unwritten_add(struct unwritten *u, const struct answer *a)
{
	if (u->n == u->cap) {
		u->cap = u->cap ? 2 * u->cap : 16;
		u->answer = mem_grow(u->answer, u->cap, sizeof(*u->answer));
	}
	u->answer[u->n] = *a;
	u->answer[u->n++].found.p = mem_copy(a->found.p, a->found.n);
}

static void pump_count_time(struct daemon *d, struct instant now)
{
	if (d->calls_end.us == INSTANT_NEVER.us)
		d->calls_end = instant_add(now, CALLS_US);
	if (!instant_before(now, d->calls_end))
		backlog_end_pass(&d->backlog);
}

/* The call is an effect that may move as soon as the service steps. */
static void pump_ask_memory(struct daemon *d, const struct call *call, struct instant now)
{
	struct event event;

	if (d->record_first)
		pump_write(d);
	d->record_first = false;
	event.kind = EVENT_ANSWER;
	memory_call(d->memory, call, now, &event.answer);
	if (memory_answer_is_unwritten(d->memory, call, &event.answer)) {
		unwritten_add(&d->unwritten, &event.answer);
		if (memory_unwritten_is_much(d->memory))
			backlog_end_pass(&d->backlog);
		return;
	}
	pump_set_time(d, &event, now);
	service_step(d->service, &event, &d->effects);
}

/* Each answer of the memory store may cause another call. What a pass has no room or no time for waits, in order, for the next pass. */
static void pump_call_memory(struct daemon *d, const struct call *call)
{
	struct instant now = clock_boottime();

	pump_count_time(d, now);
	if (backlog_lets_pass(&d->backlog))
		pump_ask_memory(d, call, now);
	else
		backlog_add(&d->backlog, call);
}

/* Its connection has ended, and the service does not know yet. If there is a new one, another server may be there. */
static void pump_refuse(struct daemon *d, const struct call *call)
{
	struct event event = {
		.kind = EVENT_ANSWER,
		.answer = {.call = call->id, .node = call->node, .class = ANSWER_REFUSED, .unsent = true, .fence = -1, .pttl_ms = -2,
		           .text = SPAN("its connection has ended")}};

	answer_queue_add(&d->answers, &event);
}

static void pump_call(struct daemon *d, const struct call *call)
{
	if (answer_queue_has_news(&d->answers, call->node))
		pump_refuse(d, call);
	else if (d->upstream && !d->restart.silent)
		upstream_call(d->upstream, call);
	else if (d->memory)
		pump_call_memory(d, call);
}

/* NULL: it is one of net. */
static struct web *web_of(const struct daemon *d, uint64_t session)
{
	if (!web_may_own(session))
		return NULL;
	return web_has(d->web, session) ? d->web : web_has(d->api, session) ? d->api : NULL;
}

static void pump_effect(struct daemon *d, const struct effect *effect)
{
	struct web *web;

	switch (effect->kind) {
	case EFFECT_SEND:
		if ((web = web_of(d, effect->send.session)))
			web_send(web, effect->send.session, effect->send.bytes.p, effect->send.bytes.n);
		else
			net_send(d->net, effect->send.session, effect->send.bytes.p, effect->send.bytes.n);
		break;
	case EFFECT_HANGUP:
		if ((web = web_of(d, effect->hangup.session))) {
			web_hangup(web, effect->hangup.session);
			break;
		}
		if (span_equal(effect->hangup.reason, SPAN(HANGUP_HTTP)))
			wrong_port_answer(d, effect->hangup.session);
		net_hangup(d->net, effect->hangup.session);
		break;
	case EFFECT_AWAIT:
		if ((web = web_of(d, effect->await.session)))
			web_await_sent(web, effect->await.session);
		else
			net_await_sent(d->net, effect->await.session);
		break;
	case EFFECT_READ: /* the web listeners bound by themselves what is under way */
		if (!web_of(d, effect->read.session))
			net_read(d->net, effect->read.session, effect->read.on);
		break;
	case EFFECT_CALL:
		pump_call(d, &effect->call);
		break;
	case EFFECT_JOURNAL: /* pump_records has added it */
		break;
	case EFFECT_VERIFY:
		if (!restart_keeps_secret(d, effect))
			guard_verify(d, effect);
		break;
	case EFFECT_AUDIT:
		guard_audit(d, effect->audit.text);
		break;
	case EFFECT_LOG:
		log_event(effect->log.level, effect->log.event, "%.*s", (int)effect->log.text.n, effect->log.text.p);
		break;
	}
}

/* Adds the records before other effects are carried out, because bytes that are sent in the same step may leave at once. */
static size_t pump_records(struct daemon *d, size_t from)
{
	for (; from < d->effects.count; from++)
		if (d->effects.item[from].kind == EFFECT_JOURNAL) {
			journal_add(&d->journal, d->effects.item[from].journal.record);
			d->record_first |= d->effects.item[from].journal.first;
		}
	return from;
}

/* The memory store answers within its call. The effects of that answer are appended to the list that is being walked. */
static void pump_effects(struct daemon *d)
{
	size_t recorded = 0;

	for (size_t i = 0; i < d->effects.count; i++) {
		recorded = pump_records(d, recorded);
		pump_effect(d, &d->effects.item[i]);
	}
	effects_reset(&d->effects);
}

void pump_step(struct daemon *d, struct event *event)
{
	pump_set_time(d, event, clock_boottime());
	service_step(d->service, event, &d->effects);
	pump_effects(d);
	/* Answers leave at the end of the pass. So the pass is cut short, even if thousands of connections have more input. */
	d->pass_end = instant_min(d->pass_end, instant_add(event->now, PASS_US));
	if (!instant_before(event->now, d->pass_end))
		event_base_loopbreak(d->base);
}

/* What waits gets as long as all else has taken in this pass: a lease whose renewal waits must not end because others ask for much that takes long. */
static void pump_backlog(struct daemon *d)
{
	struct instant now = clock_boottime();
	int64_t took_us = d->wall_known ? instant_diff(now, d->begun) : 0;
	int64_t shares = took_us < CALLS_US ? 1 : took_us > SHARES_MOST * CALLS_US ? SHARES_MOST : took_us / CALLS_US;
	struct call call;

	d->calls_end = instant_add(now, shares * CALLS_US);
	backlog_begin_pass(&d->backlog, PASS_CALLS * (unsigned)shares);
	while (!backlog_is_empty(&d->backlog)) {
		now = clock_boottime();
		pump_count_time(d, now);
		if (!backlog_first(&d->backlog, &call))
			return;
		pump_ask_memory(d, &call, now);
		backlog_drop_first(&d->backlog);
		pump_effects(d);
	}
}

/* What could not be written is in the store, and in its file as soon as that can be written: until then nobody may rely on it, as if no answer had come. */
static void unwritten_answer(struct daemon *d, struct answer a, int error)
{
	struct event event = {.kind = EVENT_ANSWER, .answer = a};
	char text[128];

	if (error) {
		snprintf(text, sizeof(text), "its jobs cannot be written: %s", jobs_trouble(error));
		event.answer.class = ANSWER_UNKNOWN;
		event.answer.text = span_of(text);
		event.answer.defect = DEFECT_JOBS;
	}
	pump_step(d, &event);
	mem_free((void *)(uintptr_t)a.found.p);
}

/* These answers may cause further calls, and so further answers. */
static void pump_unwritten(struct daemon *d)
{
	struct unwritten *u = &d->unwritten;
	int error = 0;

	for (size_t i = 0, judged = 0; i < u->n; i++) {
		if (i == judged) {
			error = memory_write_jobs(d->memory);
			judged = u->n;
		}
		unwritten_answer(d, u->answer[i], error);
	}
	u->n = 0;
}

bool pump_is_behind(const struct daemon *d)
{
	return !answer_queue_is_empty(&d->answers) || !backlog_is_empty(&d->backlog);
}

static void on_due(struct daemon *d)
{
	struct event event = {.kind = EVENT_TIME};

	pump_step(d, &event);
}

void pump_verified(void *context, uint64_t number, bool ok)
{
	struct event event = {.kind = EVENT_VERIFIED, .verified = {.number = number, .ok = ok}};

	if (guard_verified(context, ok))
		pump_step(context, &event);
}

static void on_open(void *context, uint64_t session, const struct peer *peer)
{
	struct event event = {.kind = EVENT_OPEN, .session = {.id = session, .peer = peer}};

	pump_step(context, &event);
}

static void on_line(void *context, uint64_t session, char *line, size_t n)
{
	struct event event = {.kind = EVENT_LINE, .session = {.id = session, .line = line, .n = n}};

	pump_step(context, &event);
}

static void on_too_long(void *context, uint64_t session, char *beginning, size_t n)
{
	struct event event = {.kind = EVENT_TOO_LONG, .session = {.id = session, .line = beginning, .n = n}};

	pump_step(context, &event);
}

static void on_half_closed(void *context, uint64_t session)
{
	struct event event = {.kind = EVENT_HALF_CLOSED, .session = {.id = session}};

	pump_step(context, &event);
}

static void on_sent(void *context, uint64_t session)
{
	struct event event = {.kind = EVENT_SENT, .session = {.id = session}};

	pump_step(context, &event);
}

/* The end of a session with many locks takes a pass of its own. */
static void pump_step_long(struct daemon *d, struct event *event)
{
	pump_step(d, event);
	if (!instant_before(clock_boottime(), d->pass_end))
		event_base_loopbreak(d->base);
}

static void on_eof(void *context, uint64_t session)
{
	struct event event = {.kind = EVENT_EOF, .session = {.id = session}};

	pump_step_long(context, &event);
}

static void on_gone(void *context, uint64_t session, enum gone how)
{
	struct event event = {.kind = EVENT_GONE, .session = {.id = session, .how = how}};

	pump_step_long(context, &event);
}

/*
 * Net calls this before it writes any byte, also within a pass: a job, a record, and a line of the audit log, must be written before bytes that rely on it
 * leave.
 */
static void on_writing(void *context)
{
	struct daemon *d = context;

	pump_write(d);
	guard_write(d);
}

const struct net_sink pump_net_sink = {
	.open = on_open, .line = on_line, .too_long = on_too_long, .half_closed = on_half_closed, .sent = on_sent, .eof = on_eof, .gone = on_gone,
	.writing = on_writing};

static void pump_event(struct daemon *d, struct event *event, struct instant now)
{
	pump_set_time(d, event, now);
	service_step(d->service, event, &d->effects);
	pump_effects(d);
}

static bool pump_has_time_for_answers(struct daemon *d, struct instant now)
{
	d->answers_end = instant_min(d->answers_end, instant_add(now, ANSWERS_US));
	return instant_before(now, d->answers_end);
}

static void pump_queued(struct daemon *d)
{
	struct instant now;
	struct event event;

	while (!answer_queue_is_empty(&d->answers) && pump_has_time_for_answers(d, now = clock_boottime())) {
		event = *answer_queue_first(&d->answers); /* the queue may move as soon as the service steps */
		pump_event(d, &event, now);
		answer_queue_drop_first(&d->answers);
	}
}

static void on_answer(void *context, const struct answer *answer)
{
	struct daemon *d = context;
	struct instant now = clock_boottime();
	struct event event;

	event.kind = EVENT_ANSWER;
	event.answer = *answer;
	if (answer_queue_is_empty(&d->answers) && pump_has_time_for_answers(d, now))
		pump_event(d, &event, now);
	else
		answer_queue_add(&d->answers, &event);
}

/* What a server has answered comes before the end of its connection, and before its next one. */
static void pump_node(struct daemon *d, struct event *event)
{
	if (answer_queue_is_empty(&d->answers))
		pump_step(d, event);
	else
		answer_queue_add(&d->answers, event);
}

static void on_up(void *context, unsigned node, const char *address)
{
	struct event event = {.kind = EVENT_NODE_UP, .node = {.index = node, .address = span_of(address)}};

	pump_node(context, &event);
}

static void on_down(void *context, unsigned node, enum defect defect, const char *reason, const char *address)
{
	struct event event = {.kind = EVENT_NODE_DOWN, .node = {.index = node, .defect = defect, .reason = span_of(reason), .address = span_of(address)}};

	pump_node(context, &event);
}

static void on_message(void *context, unsigned node, char what, struct span name)
{
	struct event event = {.message = {.node = node, .name = name}};

	switch (what) {
	case 'w':
		event.kind = EVENT_WOKEN;
		break;
	case 'c':
		event.kind = EVENT_WANTED;
		break;
	case 'b':
		event.kind = EVENT_BROKEN;
		break;
	case 't':
		event.kind = EVENT_DUE;
		break;
	case 'i':
		event.kind = EVENT_QUESTION;
		break;
	case 'I':
		event.kind = EVENT_CARD;
		break;
	default:
		return; /* a message of a later version */
	}
	pump_step(context, &event);
}

static void on_subscribed(void *context, unsigned node, enum defect defect, const char *refusal)
{
	struct event event = {.kind = EVENT_SUBSCRIBED, .node = {.index = node, .defect = defect, .reason = span_of(refusal)}};

	pump_node(context, &event);
}

static void on_unwatched(void *context, unsigned node, enum defect defect, const char *reason, const char *address)
{
	struct event event = {.kind = EVENT_UNWATCHED, .node = {.index = node, .defect = defect, .reason = span_of(reason), .address = span_of(address)}};

	pump_node(context, &event);
}

const struct upstream_sink pump_upstream_sink = {
	.up = on_up, .down = on_down, .answer = on_answer, .message = on_message, .subscribed = on_subscribed, .unwatched = on_unwatched};

static bool pump_wants_snapshot(struct daemon *d, struct instant now)
{
	const int64_t *figure = service_metrics(d->service)->value;

	journal_count(&d->journal, (size_t)(figure[METRIC_NAMES] + figure[METRIC_SESSIONS] + figure[METRIC_SESSIONS_DETACHED]));
	return journal_wants_snapshot(&d->journal, now);
}

/* One more portion of the snapshot that replaces the journal. False: it was the last. */
static bool pump_snapshot(struct daemon *d, struct instant now)
{
	struct effects effects;
	bool more;

	effects_init(&effects);
	more = service_snapshot(d->service, &effects);
	for (size_t i = 0; i < effects.count; i++)
		journal_keep(&d->journal, effects.item[i].journal.record);
	effects_release(&effects);
	if (!more)
		journal_end(&d->journal, now);
	return more;
}

static void pump_begin_snapshot(struct daemon *d)
{
	service_snapshot_drop(d->service);
	journal_begin(&d->journal);
}

static void pump_journal(struct daemon *d)
{
	struct event event = {.kind = EVENT_JOURNAL};
	struct instant now;

	if (!journal_has_work(&d->journal))
		return;
	now = clock_boottime();
	journal_write(&d->journal, now);
	if (!d->journal.in_image && pump_wants_snapshot(d, now))
		pump_begin_snapshot(d);
	if (d->journal.in_image)
		(void)pump_snapshot(d, now);
	else
		service_snapshot_drop(d->service); /* it may have been given up */
	if (!journal_has_turned(&d->journal, &event.journal.ok))
		return;
	pump_step(d, &event);
	pump_unwritten(d);
	pump_write(d); /* the step may have added records, and upstream_flush comes next */
}

static bool restored_next(struct daemon *d, struct span *ret_record)
{
	return d->carried ? records_next(d->carried, ret_record) : journal_next(&d->journal, ret_record);
}

/* The sessions that were handed over end. What the journal has of them can be resumed. */
static void restore_anew(struct daemon *d)
{
	carried_refuse(d, "a record makes no sense");
	net_hangup_all(d->net);
	service_free(d->service);
	d->service = service_new(&d->core_conf);
	pump_restore(d);
}

/* A record that the service cannot read ends the restoration. The service then forgets the earlier records as well, and an empty snapshot removes the file. */
void pump_restore(struct daemon *d)
{
	struct event event = {.kind = EVENT_RESTORE, .now = clock_boottime(), .wall_us = clock_wall_us()};
	unsigned restored = 0;
	int r = 0;

	while (r >= 0 && restored_next(d, &event.journal.record)) {
		r = service_step(d->service, &event, &d->effects);
		pump_effects(d);
		restored++;
	}
	if (r < 0 && d->carried) {
		restore_anew(d);
		return;
	}
	if (r < 0)
		log_event(LOG_WARN, "journal", "record=%u error=\"%s\" note=\"nothing is resumed\"", restored, strerror(-r));
	event.kind = EVENT_RESTORED;
	if (restored > 0)
		pump_step(d, &event);
	journal_forget(&d->journal);
	if (!d->carried && !pump_wants_snapshot(d, event.now)) /* what was handed over may have been in no file */
		return;
	pump_begin_snapshot(d);
	while (pump_snapshot(d, event.now))
		journal_write(&d->journal, event.now);
}

/* Writes the journal before anything leaves for clients or stores: after a crash the daemon must know each value that it asked a store to take. */
void pump_pass(struct daemon *d)
{
	struct instant now;

	if (d->web)
		web_end_pass(d->web);
	if (d->api)
		web_end_pass(d->api);
	pump_queued(d);
	if (!d->upstream) {
		pump_backlog(d);
		pump_unwritten(d);
	}
	pump_write_jobs(d);
	pump_journal(d);
	now = clock_boottime();
	d->held_back = d->upstream && upstream_flush(d->upstream, now, d->stopped || !rest_may_yield(&d->rest, now));
	guard_write(d);
	net_flush(d->net);
	timer_arm(d);
	if (d->wall_known)
		rest_note_pass(&d->rest, d->begun, clock_boottime());
	d->pass_end = d->calls_end = d->answers_end = INSTANT_NEVER;
	d->wall_known = false;
}

int pump_start(struct daemon *d)
{
	backlog_init(&d->backlog);
	backlog_begin_pass(&d->backlog, PASS_CALLS);
	effects_init(&d->effects);
	rest_init(&d->rest);
	d->pass_end = d->calls_end = d->answers_end = INSTANT_NEVER;
	return timer_start(d, on_due);
}

void pump_stop(struct daemon *d)
{
	timer_stop(d);
	effects_release(&d->effects);
	mem_free(d->unwritten.answer);
	answer_queue_release(&d->answers);
	backlog_release(&d->backlog);
}
