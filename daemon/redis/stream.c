/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol with one server. Each call must be answered exactly once: a flight is taken off its list before its reply is
 * handled, and stream_close answers the calls of all flights that are still listed.
 */
#include "daemon/redis/stream.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/handshake.h"

#include <stdio.h>
#include <stdlib.h>

#define GARBAGE  FAILURE_GARBAGE
#define OUT_KEEP ((size_t)256 * 1024) /* bytes; a larger buffer frees its memory when it is empty */

/* --- flights, and the store of spare ones --------------------------------------------------------------------------------- */

#define SPARE_MAX   16
#define SPARE_BYTES ((size_t)32 * 1024) /* a larger buffer of a spare flight is freed */

static void flight_store_init(struct flight_store *s)
{
	TAILQ_INIT(&s->spare);
	s->spares = 0;
}

static void flight_free(struct flight *f)
{
	batch_release(&f->batch);
	free(f);
}

static void flight_store_release(struct flight_store *s)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(&s->spare))) {
		TAILQ_REMOVE(&s->spare, f, next);
		flight_free(f);
	}
	s->spares = 0;
}

static struct flight *flight_get(struct flight_store *s, enum flight_kind kind)
{
	struct flight *f = TAILQ_FIRST(&s->spare);

	if (f) {
		TAILQ_REMOVE(&s->spare, f, next);
		s->spares--;
	} else {
		f = mem_alloc(sizeof(*f));
		batch_init(&f->batch);
	}
	f->kind = kind;
	f->again = false;
	return f;
}

static void flight_put(struct flight_store *s, struct flight *f)
{
	if (s->spares == SPARE_MAX) {
		flight_free(f);
		return;
	}
	batch_reset(&f->batch);
	batch_trim(&f->batch, SPARE_BYTES);
	TAILQ_INSERT_HEAD(&s->spare, f, next);
	s->spares++;
}

static void flight_put_all(struct flight_store *s, struct flight_list *list)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, f, next);
		flight_put(s, f);
	}
}

static bool batch_names(const struct batch *b, uint64_t hash)
{
	unsigned i;

	for (i = 0; i < b->count; i++) {
		if (batch_entry(b, i)->hash == hash)
			return true;
	}
	return false;
}

/* Whether a flight of the list carries an entry for the name of this hash. */
static bool flight_list_names(const struct flight_list *list, uint64_t hash)
{
	const struct flight *f;

	TAILQ_FOREACH(f, list, next)
	{
		if (f->kind == FLIGHT_SCRIPT && batch_names(&f->batch, hash))
			return true;
	}
	return false;
}

/* --- out ------------------------------------------------------------------------------------------------------------- */

/* Lists the command as in flight. The caller must append its bytes to out next. */
static void stream_begin(struct stream *s, struct flight *f, struct instant now)
{
	s->last = now;
	f->sent = now;
	f->begin = s->handed + buf_length(&s->out);
	TAILQ_INSERT_TAIL(&s->flying, f, next);
}

static void stream_begin_plain(struct stream *s, enum flight_kind kind, struct instant now)
{
	stream_begin(s, flight_get(&s->store, kind), now);
}

static void stream_write_load(struct stream *s, enum script_kind script, struct instant now)
{
	struct flight *f = flight_get(&s->store, FLIGHT_LOAD);

	f->batch.script = script;
	stream_begin(s, f, now);
	handshake_put(&s->out, "SCRIPT LOAD %b", script_text[script].p, script_text[script].n);
}

static void stream_write_script(struct stream *s, struct flight *f, struct instant now)
{
	enum script_kind script = f->batch.script;

	stream_begin(s, f, now);
	batch_write(&f->batch, &s->conf->keys, f->again ? NULL : s->sha[script], script_text[script], &s->out);
}

/* The longest one is last: a server that requires a password says so at the first. */
static void stream_load_all(struct stream *s, struct instant now)
{
	for (enum script_kind script = SCRIPT_N; script-- > 0;)
		stream_write_load(s, script, now);
}

static void stream_begin_anew(struct stream *s)
{
	resp_reset(&s->resp);
	buf_clear(&s->out);
	s->handed = 0;
	s->ready = s->asks_info = false;
	s->defect = DEFECT_NONE;
}

void stream_open(struct stream *s, struct instant now)
{
	stream_begin_anew(s);
	if (s->conf->password) {
		stream_begin_plain(s, FLIGHT_AUTH, now);
		handshake_auth(&s->out, s->conf->user, s->conf->password);
	}
	if (s->conf->database) {
		stream_begin_plain(s, FLIGHT_SELECT, now);
		handshake_put(&s->out, "SELECT %u", s->conf->database);
	}
	if (s->masters_only) {
		stream_begin_plain(s, FLIGHT_ROLE, now);
		handshake_put(&s->out, "INFO replication"); /* users who may probe a server may use INFO, but perhaps not ROLE */
	}
	stream_begin_plain(s, FLIGHT_EVAL, now);
	handshake_put(&s->out, "EVAL %s 0", HANDSHAKE_EVAL);
	stream_load_all(s, now);
}

void stream_call(struct stream *s, const struct call *call, uint64_t hash)
{
	struct flight *f = TAILQ_LAST(&s->pending, flight_list);

	if (!f || !batch_accepts(&f->batch, call)) {
		f = flight_get(&s->store, FLIGHT_SCRIPT);
		TAILQ_INSERT_TAIL(&s->pending, f, next);
	}
	batch_add(&f->batch, &s->conf->keys, call, hash);
}

void stream_flush(struct stream *s, struct instant now)
{
	struct flight *f;

	while (s->ready && (f = TAILQ_FIRST(&s->pending))) {
		TAILQ_REMOVE(&s->pending, f, next);
		stream_write_script(s, f, now);
	}
}

void stream_ping(struct stream *s, struct instant now)
{
	stream_begin_plain(s, FLIGHT_PING, now);
	handshake_put(&s->out, "PING");
}

void stream_consume(struct stream *s, size_t n)
{
	s->handed += n;
	buf_consume(&s->out, n);
	buf_trim(&s->out, OUT_KEEP);
}

/* --- in -------------------------------------------------------------------------------------------------------------- */

static struct span stream_text(const struct stream *s)
{
	return resp_text(&s->resp, &s->resp.value[0]);
}

/* The server's error text, cleaned for the log. */
static const char *stream_reason(struct stream *s)
{
	s->defect = failure_defect(stream_text(s));
	handshake_reason(stream_text(s), s->conf->password, s->reason, sizeof(s->reason));
	return s->reason;
}

/* A server that lacks a command of the handshake may be a sentinel, a proxy, or a server with a renamed command: INFO shows which. */
static const char *stream_refused(struct stream *s, struct instant now)
{
	if (s->asks_info)
		return NULL;
	(void)stream_reason(s);
	if (s->defect != DEFECT_COMMAND)
		return s->reason;
	s->asks_info = true;
	stream_begin_plain(s, FLIGHT_WHAT, now);
	handshake_put(&s->out, "INFO server");
	return NULL;
}

static const char *stream_on_what(struct stream *s)
{
	static const char sentinel[] = "redis_mode:sentinel";
	struct span text = stream_text(s);

	if (resp_is_error(&s->resp) && failure_defect(text) == DEFECT_COMMAND) {
		s->defect = DEFECT_PROXY;
	} else if (!resp_is_error(&s->resp) && text.n && memmem(text.p, text.n, sentinel, sizeof(sentinel) - 1)) {
		s->defect = DEFECT_SENTINEL_PORT;
		return FAILURE_SENTINEL;
	}
	return s->reason;
}

static const char *stream_on_status(struct stream *s, struct instant now)
{
	if (resp_is_error(&s->resp))
		return stream_refused(s, now);
	return s->resp.value[0].type == RESP_STATUS ? NULL : GARBAGE;
}

static const char *stream_on_role(struct stream *s, struct instant now)
{
	static const char master[] = "role:master\r\n";
	struct span text = stream_text(s);

	if (resp_is_error(&s->resp))
		return stream_refused(s, now);
	if (s->resp.value[0].type != RESP_STRING)
		return GARBAGE;
	if (text.n && memmem(text.p, text.n, master, sizeof(master) - 1))
		return NULL;
	s->defect = DEFECT_SENTINEL;
	return FAILURE_REPLICA;
}

/* Otherwise a server without EVAL would seem well until its scripts are flushed. */
static const char *stream_on_eval(struct stream *s, struct instant now)
{
	struct span text = stream_text(s);

	if (resp_is_error(&s->resp))
		return stream_refused(s, now);
	if (s->resp.value[0].type != RESP_STRING || text.n >= sizeof(s->run_id))
		return GARBAGE;
	(void)snprintf(s->run_id, sizeof(s->run_id), "%.*s", (int)text.n, text.n ? text.p : "");
	return NULL;
}

static bool is_sha(struct span text)
{
	size_t i;

	for (i = 0; i < text.n; i++) {
		if (!text.p[i] || !strchr("0123456789abcdef", text.p[i]))
			return false;
	}
	return text.n == SHA_LENGTH;
}

static const char *stream_on_load(struct stream *s, enum script_kind script, struct instant now)
{
	if (resp_is_error(&s->resp)) /* once ready, the reply to the EVAL after it shows the error */
		return s->ready ? NULL : stream_refused(s, now);
	if (s->resp.value[0].type != RESP_STRING || !is_sha(stream_text(s)))
		return GARBAGE;
	memcpy(s->sha[script], stream_text(s).p, SHA_LENGTH);
	return NULL;
}

/* A server that is busy, loading or out of disk answers PING with an error. Its connection works. */
static const char *stream_on_ping(const struct stream *s)
{
	return s->resp.value[0].type == RESP_STATUS || resp_is_error(&s->resp) ? NULL : GARBAGE;
}

/*
 * After NOSCRIPT nothing was carried out, so the calls are sent again with the text of the script: flushing the script cache does no harm. Calls whose name has
 * a later call in flight are answered REFUSED instead: that later call may be a release, and its acquire must not run after it. A probe, which has no name,
 * only reads. To refuse it would make its node unusable for a moment.
 */
static void stream_repeat(struct stream *s, const struct flight *f, struct instant now)
{
	struct flight *again = flight_get(&s->store, FLIGHT_SCRIPT), *late = flight_get(&s->store, FLIGHT_SCRIPT);
	unsigned i;

	again->again = true;
	for (i = 0; i < f->batch.count; i++) {
		bool overtaken = f->batch.script != SCRIPT_PROBE && flight_list_names(&s->flying, batch_entry(&f->batch, i)->hash);

		batch_take(overtaken ? &late->batch : &again->batch, &f->batch, i);
	}
	stream_write_load(s, f->batch.script, now);
	if (again->batch.count)
		stream_write_script(s, again, now);
	else
		flight_put(&s->store, again);
	script_fail(&late->batch, s->node, ANSWER_REFUSED, DEFECT_NONE, SPAN("NOSCRIPT"), &s->sink);
	flight_put(&s->store, late);
}

static const char *stream_on_script(struct stream *s, const struct flight *f, struct instant now)
{
	if (script_is_missing(&s->resp) && !f->again) {
		stream_repeat(s, f, now);
		return NULL;
	}
	if (script_answer(&f->batch, &s->resp, s->node, &s->sink) < 0) {
		script_fail(&f->batch, s->node, ANSWER_UNKNOWN, DEFECT_NO_REDIS, SPAN(GARBAGE), &s->sink);
		return GARBAGE;
	}
	/* NOAUTH: only a new handshake helps. */
	return resp_is_error(&s->resp) && failure_is(stream_text(s), "NOAUTH") ? stream_reason(s) : NULL;
}

static const char *stream_on_reply(struct stream *s, const struct flight *f, struct instant now)
{
	switch (f->kind) {
	case FLIGHT_ROLE:
		return stream_on_role(s, now);
	case FLIGHT_EVAL:
		return stream_on_eval(s, now);
	case FLIGHT_LOAD:
		return stream_on_load(s, f->batch.script, now);
	case FLIGHT_PING:
		return stream_on_ping(s);
	case FLIGHT_WHAT:
		return stream_on_what(s);
	case FLIGHT_SCRIPT:
		return stream_on_script(s, f, now);
	default:
		return stream_on_status(s, now);
	}
}

static const char *stream_take_reply(struct stream *s, struct instant now)
{
	struct flight *f = TAILQ_FIRST(&s->flying);
	const char *wrong;

	if (!f)
		return resp_is_error(&s->resp) ? stream_reason(s) : GARBAGE;
	TAILQ_REMOVE(&s->flying, f, next);
	s->answered = f->sent;
	wrong = stream_on_reply(s, f, now);
	flight_put(&s->store, f);
	if (!wrong && TAILQ_EMPTY(&s->flying))
		s->ready = true;
	return wrong;
}

const char *stream_take(struct stream *s, const void *p, size_t n, struct instant now)
{
	const char *wrong = NULL;
	int rc = resp_feed(&s->resp, p, n);

	while (!wrong && rc >= 0 && (rc = resp_next(&s->resp)) > 0)
		wrong = stream_take_reply(s, now);
	if (!wrong && rc < 0)
		wrong = GARBAGE;
	if (wrong && !s->defect)
		s->defect = DEFECT_NO_REDIS;
	return wrong;
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

void stream_init(struct stream *s, const struct stream_conf *conf, unsigned node, const struct script_sink *sink)
{
	*s = (struct stream){.conf = conf, .node = node, .sink = *sink};
	TAILQ_INIT(&s->pending);
	TAILQ_INIT(&s->flying);
	flight_store_init(&s->store);
	resp_init(&s->resp);
	buf_init(&s->out);
}

void stream_release(struct stream *s)
{
	flight_put_all(&s->store, &s->pending);
	flight_put_all(&s->store, &s->flying);
	flight_store_release(&s->store);
	resp_release(&s->resp);
	buf_release(&s->out);
}

static void stream_fail(struct stream *s, const struct flight_list *list, uint64_t taken, struct span reason)
{
	const struct flight *f;

	TAILQ_FOREACH(f, list, next)
	{
		if (f->kind != FLIGHT_SCRIPT)
			continue;
		if (f->begin < taken)
			script_fail(&f->batch, s->node, ANSWER_UNKNOWN, DEFECT_NONE, reason, &s->sink);
		else
			script_unsent(&f->batch, s->node, reason, &s->sink);
	}
}

void stream_close(struct stream *s, uint64_t taken, const char *reason)
{
	struct flight_list flying = TAILQ_HEAD_INITIALIZER(flying), pending = TAILQ_HEAD_INITIALIZER(pending);

	TAILQ_CONCAT(&flying, &s->flying, next);
	TAILQ_CONCAT(&pending, &s->pending, next);
	buf_clear(&s->out);
	s->ready = false;
	stream_fail(s, &flying, taken, span_of(reason));
	stream_fail(s, &pending, 0, span_of(reason)); /* never written */
	flight_put_all(&s->store, &flying);
	flight_put_all(&s->store, &pending);
}

struct instant stream_oldest(const struct stream *s)
{
	const struct flight *oldest = TAILQ_FIRST(&s->flying);

	return oldest ? oldest->sent : INSTANT_NEVER;
}

/* --- a restart of the daemon ----------------------------------------------------------------------------------------- */

bool stream_is_quiet(const struct stream *s)
{
	const struct flight *f;

	TAILQ_FOREACH(f, &s->flying, next)
	{
		if (f->kind != FLIGHT_PING)
			return false;
	}
	return TAILQ_EMPTY(&s->pending) && !buf_length(&s->out);
}
