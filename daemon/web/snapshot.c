/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See snapshot.h. It asks LIST nodes, STATS, LIST locks, LIST queues, and SHOW for each lock, a few at a time, so that others are served meanwhile. The locks
 * are not seen at one moment: a lock may change, or go, between LIST and SHOW. Queues are left out while no store can be asked for them; the service gives
 * each store its time, so that the answer comes in any case.
 */
#include "daemon/web/snapshot.h"

#include "daemon/base/mem.h"
#include "daemon/web/internal.h"
#include "daemon/web/listed.h"
#include "daemon/web/notation.h"
#include "daemon/web/query.h"
#include "daemon/web/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWS_AT_ONCE 16
#define ROWS_DEFAULT  1000 /* as in LIST */
#define ROWS_UNSEEN   32 /* so many rows are taken between two looks at what all answers have */
#define BYTES_MOST    ((size_t)8 << 20) /* of one answer: it ends after the lock that fills them */
#define BYTES_LEAST   ((size_t)64 << 10) /* likewise, while all answers that are not read yet have BYTES_OF_ALL */
#define BYTES_OF_ALL  ((size_t)32 << 20)

struct snapshot {
	struct asker asker;
	struct snapshot_taker taker;
	char *query; /* NULL: none */
	enum { ASKS_NODES, ASKS_STATS, ASKS_LOCKS, ASKS_QUEUES, ASKS_HOLDERS } phase;
	struct buf out;
	size_t counted; /* bytes of all that it has, in web.snapshots */
	struct buf fields; /* of the locks, as JSON */
	struct buf waiters; /* of the lock whose rows are being read */
	struct totals totals;
	struct listed rows;
	size_t asked, told; /* rows that SHOW was asked for, and that are written */
	bool more;
	bool cut; /* LIST has more rows than it takes */
	size_t most;   /* rows of the page */
};

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	s->asker.web->snapshots -= s->counted;
	asker_close(&s->asker);
	listed_release(&s->rows);
	buf_release(&s->out);
	buf_release(&s->fields);
	buf_release(&s->waiters);
	mem_free(s->query);
	free(s);
}

static void snapshot_fails(struct snapshot *s, int status, const char *text)
{
	struct snapshot_taker taker = s->taker;

	snapshot_free(s);
	taker.failed(taker.context, status, text);
}

static void snapshot_done(struct snapshot *s)
{
	struct snapshot_taker taker = s->taker;
	struct buf out;

	notation_raw(&s->out, s->more ? "],\"more\":true}\n" : "],\"more\":false}\n");
	out = s->out;
	buf_init(&s->out);
	snapshot_free(s);
	taker.made(taker.context, &out);
}

/* --- what is asked --- */

static void snapshot_asks(struct snapshot *s, const char *what)
{
	const char *query = s->query;
	char line[REPLY_MAX], limit[32] = "";
	size_t n = 0;

	snprintf(line, sizeof(line), "LIST %s", what);
	if (!query_pass(query, "prefix", line, sizeof(line)) || !query_pass(query, "after", line, sizeof(line)) ||
	    !query_pass(query, "limit", line, sizeof(line))) {
		snapshot_fails(s, HTTP_BADREQUEST, "prefix and after are names of at most 512 bytes, limit is a number");
		return;
	}
	if (query_get(query, "limit", limit, sizeof(limit) - 1, &n) == QUERY_FOUND && n > 0)
		s->most = strtoul(limit, NULL, 10); /* LIST refuses what is no number */
	asker_say(&s->asker, "%s", line);
}

static void row_ask(struct snapshot *s, const struct listed_row *row)
{
	char quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n = quote((struct span){row->name, row->n}, quoted, sizeof(quoted));

	asker_say(&s->asker, "SHOW %.*s", (int)n, quoted);
}

static void queue_write(struct snapshot *s, const struct listed_row *row)
{
	notation_comma(&s->out);
	buf_append(&s->out, s->fields.data + row->begin, row->end - row->begin);
	notation_raw(&s->out, ",\"holders\":[],\"waiters\":[]}");
}

/* Readers that take large answers slowly, or not at all, must not fill the memory. */
static bool snapshot_is_full(struct snapshot *s, size_t bytes)
{
	struct web *w = s->asker.web;
	size_t n = buf_length(&s->out) + buf_length(&s->fields) + s->rows.bytes;

	w->snapshots += n - s->counted;
	s->counted = n;
	return bytes > (w->snapshots + visits_unsent(w) > BYTES_OF_ALL ? BYTES_LEAST : BYTES_MOST);
}

static void snapshot_goes_on(struct snapshot *s)
{
	size_t until = s->asked + SHOWS_AT_ONCE;

	for (; s->told < s->rows.n && s->rows.row[s->told].queue; s->told++)
		queue_write(s, &s->rows.row[s->told]);
	s->asked = s->told;
	if (s->told == s->rows.n || snapshot_is_full(s, buf_length(&s->out))) {
		s->more |= s->told < s->rows.n;
		snapshot_done(s);
		return;
	}
	do {
		row_ask(s, &s->rows.row[s->asked++]);
	} while (s->asked < s->rows.n && s->asked < until && !s->rows.row[s->asked].queue && askers_have_time(s->asker.web));
}

/* --- what comes back --- */

static void row_add(struct snapshot *s, const struct reply_line *line)
{
	static const char *const more[] = {"fence", "limit", "held", "alarm", "holder", "held_ms", "ttl_ms", "due", "leased", "dead", "next_ms"};
	bool queue = s->phase == ASKS_QUEUES;
	struct span name = reply_find(line, queue ? "queue" : "name"), kind = reply_find(line, "kind"), mode = reply_find(line, "mode");
	struct listed_row *row;

	if (name.n == 0 || name.n > NAME_MAX_BYTES || s->cut)
		return;
	/* Each of many that are made at once has its rows before it tells the first. */
	if (s->rows.n % ROWS_UNSEEN == ROWS_UNSEEN - 1 && queue == (s->rows.queues > 0) && snapshot_is_full(s, buf_length(&s->fields) + s->rows.bytes)) {
		s->cut = true;
		return;
	}
	row = listed_add(&s->rows, name, queue);
	row->begin = s->fields.end;
	notation_raw(&s->fields, "{");
	notation_member(&s->fields, SPAN("name"), name);
	notation_member(&s->fields, SPAN("kind"), queue ? SPAN("queue") : kind.p ? kind : SPAN("lock"));
	if (!queue && (!kind.p || span_equal(kind, SPAN("lock"))))
		notation_member(&s->fields, SPAN("mode"), mode.p ? mode : SPAN("exclusive"));
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		notation_field(&s->fields, line, more[i], NULL);
	row->end = s->fields.end;
}

static void person_write(struct buf *out, const struct reply_line *line)
{
	static const char *const same[] = {"peer",  "pid",    "uid",         "held_ms",  "waited_ms", "valid_ms", "ttl_ms", "seen_ms", "count",
	                                   "fence", "permit", "detached_ms", "priority", "mode",      "owner",     "reason"};
	struct span name = reply_find(line, "name"), holder = reply_find(line, "holder"), note = reply_find(line, "note");

	notation_raw(out, "{");
	notation_field(out, line, "session", NULL);
	notation_member(out, SPAN("label"), name.p ? name : holder.p ? holder : SPAN(""));
	if (span_starts(holder, SPAN("@")))
		notation_member(out, SPAN("host"), holder);
	notation_member(out, SPAN("note"), note.p ? note : SPAN(""));
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		notation_field(out, line, same[i], NULL);
	notation_raw(out, "}");
}

/* Nobody holds the name, and nobody gets it yet. */
static void kept_write(struct buf *out, const struct reply_line *line)
{
	notation_raw(out, ",\"kept\":{");
	notation_field(out, line, "kept_ms", NULL);
	notation_field(out, line, "ttl_ms", NULL);
	notation_field(out, line, "kept_by", NULL);
	notation_raw(out, "}");
}

/* The first row of an answer begins the object of its lock. kept: it says that the name is kept; NULL: it does not. */
static void lock_begin(struct snapshot *s, const struct reply_line *kept)
{
	const struct listed_row *row = &s->rows.row[s->told];

	if (s->waiters.end > 0)
		return;
	notation_comma(&s->out);
	buf_append(&s->out, s->fields.data + row->begin, row->end - row->begin);
	if (kept)
		kept_write(&s->out, kept);
	notation_raw(&s->out, ",\"holders\":[");
	notation_raw(&s->waiters, "],\"waiters\":[");
}

static void lock_end(struct snapshot *s)
{
	lock_begin(s, NULL);
	buf_append(&s->out, buf_begin(&s->waiters), buf_length(&s->waiters));
	notation_raw(&s->out, "]}");
	buf_clear(&s->waiters);
	s->told++;
}

static void holder_read(struct snapshot *s, const struct reply_line *line)
{
	struct span role = reply_find(line, "role");
	bool kept = span_equal(role, SPAN("kept"));
	struct buf *out = span_equal(role, SPAN("waiter")) ? &s->waiters : &s->out;

	lock_begin(s, kept ? line : NULL);
	if (kept)
		return;
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
		totals_add(&s->totals, &s->out, line);
		break;
	case ASKS_LOCKS:
	case ASKS_QUEUES:
		row_add(s, line);
		break;
	case ASKS_HOLDERS:
		holder_read(s, line);
		break;
	}
}

static void on_end(struct snapshot *s, const struct reply_line *line)
{
	bool more = s->cut || reply_number(line, "more", 0) > 0;

	switch (s->phase) {
	case ASKS_NODES:
		notation_raw(&s->out, "],\"totals\":{");
		s->phase = ASKS_STATS;
		asker_say(&s->asker, "STATS");
		break;
	case ASKS_STATS:
		totals_end(&s->totals, &s->out);
		notation_raw(&s->out, "},\"locks\":[");
		s->phase = ASKS_LOCKS;
		snapshot_asks(s, "locks");
		break;
	case ASKS_LOCKS:
		s->more = more;
		s->cut = false;
		s->phase = ASKS_QUEUES;
		snapshot_asks(s, "queues");
		break;
	case ASKS_QUEUES:
		s->more = listed_arrange(&s->rows, s->most, s->more, more);
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

/* Who may look at some names alone sees those, and neither stores nor totals. A lock that cannot be shown any more has nobody.
 * Queues that no store tells of are left out. */
static bool is_left_out(const struct snapshot *s, const struct reply_line *line)
{
	return s->phase == ASKS_HOLDERS || s->phase == ASKS_QUEUES || (s->phase != ASKS_LOCKS && span_equal(line->code, SPAN("DENIED")));
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

struct snapshot *snapshot_begin(struct web *w, const struct peer *peer, const char *query, const struct snapshot_taker *taker)
{
	struct snapshot *s = mem_alloc(sizeof(*s));

	s->most = ROWS_DEFAULT;
	s->asker.line = on_line;
	s->asker.over = on_over;
	if (!asker_open(w, &s->asker, peer)) {
		free(s);
		return NULL;
	}
	s->taker = *taker;
	s->query = query ? mem_copy(query, strlen(query)) : NULL;
	server_write(s);
	asker_say(&s->asker, "LIST nodes");
	return s;
}
