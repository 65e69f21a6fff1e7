/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See snapshot.h. It asks LIST nodes, STATS, LIST locks, and SHOW for each lock, a few at a time, so that others are served meanwhile. The locks are
 * not seen at one moment: a lock may change, or go, between LIST and SHOW.
 */
#include "daemon/web/snapshot.h"

#include "daemon/base/mem.h"
#include "daemon/web/answer.h"
#include "daemon/web/internal.h"
#include "daemon/web/notation.h"
#include "daemon/web/query.h"

#include <stdlib.h>
#include <string.h>

#define SHOWS_AT_ONCE 16
#define ROWS_UNSEEN   32 /* so many rows are taken between two looks at what all answers have */
#define BYTES_MOST    ((size_t)8 << 20) /* of one answer: it ends after the lock that fills them */
#define BYTES_LEAST   ((size_t)64 << 10) /* likewise, while all answers that are not read yet have BYTES_OF_ALL */
#define BYTES_OF_ALL  ((size_t)32 << 20)

struct row {
	char *name;   /* quoted, as SHOW takes it */
	size_t begin, end; /* its fields, in snapshot.fields */
};

struct snapshot {
	struct asker asker;
	struct evhttp_request *req;
	enum { ASKS_NODES, ASKS_STATS, ASKS_LOCKS, ASKS_HOLDERS } phase;
	struct buf out;
	size_t counted; /* bytes of all that it has, in web.snapshots */
	size_t names;   /* bytes of the names in the rows */
	struct buf fields; /* of the locks, as JSON */
	struct buf waiters; /* of the lock whose rows are being read */
	struct row *row;
	size_t rows, cap;
	size_t asked, told; /* rows that SHOW was asked for, and that are written */
	bool more;
	bool cut; /* LIST has more rows than it takes */
};

static void snapshot_free(struct snapshot *s)
{
	struct evhttp_connection *c = s->req ? evhttp_request_get_connection(s->req) : NULL;

	if (c)
		evhttp_connection_set_closecb(c, NULL, NULL);
	s->asker.web->snapshots -= s->counted;
	asker_close(&s->asker);
	for (size_t i = 0; i < s->rows; i++)
		free(s->row[i].name);
	free(s->row);
	buf_release(&s->out);
	buf_release(&s->fields);
	buf_release(&s->waiters);
	free(s);
}

static void on_close(struct evhttp_connection *c, void *context)
{
	struct snapshot *s = context;
	struct evhttp_request *req = s->req;

	(void)c;
	s->req = NULL;
	snapshot_free(s);
	request_abandoned(req);
}

static void snapshot_fails(struct snapshot *s, int status, const char *text)
{
	struct evhttp_request *req = s->req;

	evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
	s->req = NULL;
	answer_error(req, status, text);
	snapshot_free(s);
}

static void snapshot_done(struct snapshot *s)
{
	struct evhttp_request *req = s->req;

	evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
	s->req = NULL;
	notation_raw(&s->out, s->more ? "],\"more\":true}\n" : "],\"more\":false}\n");
	answer(req, HTTP_OK, TYPE_JSON, buf_begin(&s->out), buf_length(&s->out), NULL);
	snapshot_free(s);
}

/* --- what is asked --- */

static void snapshot_asks_locks(struct snapshot *s)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(s->req));
	char line[LINE_MAX_DEFAULT] = "LIST locks";

	if (!query_pass(query, "prefix", line, sizeof(line)) || !query_pass(query, "after", line, sizeof(line)) ||
	    !query_pass(query, "limit", line, sizeof(line))) {
		snapshot_fails(s, HTTP_BADREQUEST, "prefix and after are names of at most 512 bytes, limit is a number");
		return;
	}
	s->phase = ASKS_LOCKS;
	asker_say(&s->asker, "%s", line);
}

/* Readers that take large answers slowly, or not at all, must not fill the memory. */
static bool snapshot_is_full(struct snapshot *s, size_t bytes)
{
	struct web *w = s->asker.web;
	size_t n = buf_length(&s->out) + buf_length(&s->fields) + s->names;

	w->snapshots += n - s->counted;
	s->counted = n;
	return bytes > (w->snapshots + visits_unsent(w) > BYTES_OF_ALL ? BYTES_LEAST : BYTES_MOST);
}

static void snapshot_goes_on(struct snapshot *s)
{
	size_t until = s->asked + SHOWS_AT_ONCE;

	if (s->told < s->rows && snapshot_is_full(s, buf_length(&s->out))) {
		s->more = true;
		snapshot_done(s);
		return;
	}
	if (s->told == s->rows) {
		snapshot_done(s);
		return;
	}
	for (; s->asked < s->rows && s->asked < until; s->asked++)
		asker_say(&s->asker, "SHOW %s", s->row[s->asked].name);
}

/* --- what comes back --- */

static void row_add(struct snapshot *s, const struct reply_line *line)
{
	static const char *const more[] = {"limit", "held", "alarm", "holder", "held_ms", "ttl_ms"};
	struct span name = reply_find(line, "name"), kind = reply_find(line, "kind"), mode = reply_find(line, "mode");
	char quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n = name.p ? quote(name, quoted, sizeof(quoted)) : 0;
	struct row *row;

	if (!n || s->cut)
		return;
	/* Each of many that are made at once has its rows before it tells the first. */
	if (s->rows % ROWS_UNSEEN == ROWS_UNSEEN - 1 && snapshot_is_full(s, buf_length(&s->fields) + s->names)) {
		s->cut = true;
		return;
	}
	if (s->rows == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->row = mem_grow(s->row, s->cap, sizeof(*s->row));
	}
	row = &s->row[s->rows++];
	row->name = mem_copy(quoted, n);
	s->names += n;
	row->begin = s->fields.end;
	notation_raw(&s->fields, "{");
	notation_member(&s->fields, SPAN("name"), name);
	notation_member(&s->fields, SPAN("kind"), kind.p ? kind : SPAN("lock"));
	notation_member(&s->fields, SPAN("mode"), mode.p ? mode : SPAN("exclusive"));
	notation_field(&s->fields, line, "fence", NULL);
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		notation_field(&s->fields, line, more[i], NULL);
	row->end = s->fields.end;
}

static void person_write(struct buf *out, const struct reply_line *line)
{
	static const char *const same[] = {"peer",  "pid",    "uid",         "held_ms",  "waited_ms", "valid_ms", "ttl_ms", "seen_ms", "count",
	                                   "fence", "permit", "detached_ms", "priority", "mode",      "weight",   "owner",  "reason"};
	struct span name = reply_find(line, "name"), holder = reply_find(line, "holder"), note = reply_find(line, "note");

	notation_raw(out, "{");
	notation_field(out, line, "session", NULL);
	notation_member(out, SPAN("label"), name.p ? name : holder.p ? holder : SPAN(""));
	notation_member(out, SPAN("note"), note.p ? note : SPAN(""));
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		notation_field(out, line, same[i], NULL);
	notation_raw(out, "}");
}

/* The first row of an answer begins the object of its lock. */
static void lock_begin(struct snapshot *s)
{
	const struct row *row = &s->row[s->told];

	if (s->waiters.end > 0)
		return;
	notation_comma(&s->out);
	buf_append(&s->out, s->fields.data + row->begin, row->end - row->begin);
	notation_raw(&s->out, ",\"holders\":[");
	notation_raw(&s->waiters, "],\"waiters\":[");
}

static void lock_end(struct snapshot *s)
{
	lock_begin(s);
	buf_append(&s->out, buf_begin(&s->waiters), buf_length(&s->waiters));
	notation_raw(&s->out, "]}");
	buf_clear(&s->waiters);
	s->told++;
}

static void holder_read(struct snapshot *s, const struct reply_line *line)
{
	struct buf *out;

	lock_begin(s);
	out = span_equal(reply_find(line, "role"), SPAN("waiter")) ? &s->waiters : &s->out;
	notation_comma(out);
	person_write(out, line);
}

static void on_row(struct snapshot *s, const struct reply_line *line)
{
	switch (s->phase) {
	case ASKS_NODES:
		notation_comma(&s->out);
		notation_line(&s->out, line);
		break;
	case ASKS_STATS:
		notation_comma(&s->out);
		notation_text(&s->out, reply_find(line, "metric"));
		buf_printf(&s->out, ":%lld", (long long)reply_number(line, "value", 0));
		break;
	case ASKS_LOCKS:
		row_add(s, line);
		break;
	case ASKS_HOLDERS:
		holder_read(s, line);
		break;
	}
}

static void on_end(struct snapshot *s, const struct reply_line *line)
{
	switch (s->phase) {
	case ASKS_NODES:
		notation_raw(&s->out, "],\"totals\":{");
		s->phase = ASKS_STATS;
		asker_say(&s->asker, "STATS");
		break;
	case ASKS_STATS:
		notation_raw(&s->out, "},\"locks\":[");
		snapshot_asks_locks(s);
		break;
	case ASKS_LOCKS:
		s->more = s->cut || reply_number(line, "more", 0) > 0;
		s->phase = ASKS_HOLDERS;
		snapshot_goes_on(s);
		break;
	case ASKS_HOLDERS:
		lock_end(s);
		if (s->told == s->asked)
			snapshot_goes_on(s);
		break;
	}
}

/* Who may look at some names alone sees those, and neither stores nor totals. A lock that cannot be shown any more has nobody. */
static bool is_left_out(const struct snapshot *s, const struct reply_line *line)
{
	return s->phase == ASKS_HOLDERS || (s->phase != ASKS_LOCKS && span_equal(line->code, SPAN("DENIED")));
}

static void on_line(struct asker *a, const struct reply_line *line)
{
	struct snapshot *s = (struct snapshot *)a; /* its first member */

	if (line->kind == LINE_ROW)
		on_row(s, line);
	else if (line->kind != LINE_ERR || is_left_out(s, line))
		on_end(s, line);
	else if (span_equal(line->code, SPAN("ARG")) || span_equal(line->code, SPAN("LIMIT")))
		snapshot_fails(s, HTTP_BADREQUEST, "LIST refuses these values: limit is a number from 1 to 10000");
	else if (span_equal(line->code, SPAN("DENIED")))
		snapshot_fails(s, 403, "the rules do not let you look");
	else
		snapshot_fails(s, HTTP_SERVUNAVAIL, "the daemon cannot tell now");
}

static void on_over(struct asker *a)
{
	snapshot_fails((struct snapshot *)a, HTTP_SERVUNAVAIL, "the daemon is stopping");
}

/* The server tells of itself as a row does. */
static void server_write(struct snapshot *s)
{
	struct web *w = s->asker.web;
	struct reply_line line;
	struct buf row;

	buf_init(&row);
	w->sink.server(w->sink.context, &row);
	notation_raw(&s->out, "{\"server\":");
	if (reply_parse(buf_begin(&row), buf_length(&row) - 1, &line) == 0)
		notation_line(&s->out, &line);
	else
		notation_raw(&s->out, "{}");
	notation_raw(&s->out, ",\"stores\":[");
	buf_release(&row);
}

void snapshot_begin(struct web *w, struct evhttp_request *req)
{
	struct snapshot *s = mem_alloc(sizeof(*s));

	s->req = req;
	s->asker.line = on_line;
	s->asker.over = on_over;
	if (!asker_open(w, &s->asker, req)) {
		free(s);
		answer_error(req, HTTP_SERVUNAVAIL, "too many requests at a time");
		return;
	}
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, s);
	server_write(s);
	asker_say(&s->asker, "LIST nodes");
}
