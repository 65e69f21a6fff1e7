/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /api/v1/snapshot. It asks LIST nodes, STATS, LIST locks, LIST queues, and SHOW for each lock, a few at a time, so that others are served meanwhile. The
 * locks are not seen at one moment: a lock may change, or disappear, between LIST and SHOW. Queues are left out while no store answers for them. The service
 * gives each store its time, so the answer comes in any case.
 */
#include "daemon/web/internal.h"

#include "daemon/base/mem.h"
#include "daemon/web/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWS_AT_ONCE 16
#define ROWS_DEFAULT  1000 /* as in LIST */
#define ROWS_UNSEEN   32 /* rows between two checks of the size of all answers */
#define BYTES_MOST    ((size_t)8 << 20) /* of one answer: it ends after the lock that fills them */
#define BYTES_LEAST   ((size_t)64 << 10) /* the same, while the unread answers together exceed BYTES_OF_ALL */
#define BYTES_OF_ALL  ((size_t)32 << 20)
#define AT_ONCE       (WEB_SESSIONS - STREAMS_MOST) /* each has a session */
#define TOTALS_NAME   96

/* The rows of LIST locks and LIST queues for one page, in the order of names. Zero-filled it is empty. It owns its names. */
struct listed_row {
	char *name;
	size_t n;
	bool queue;        /* else a lock or a semaphore */
	size_t begin, end; /* the place of its fields, for the function that added it */
};

struct listed {
	struct listed_row *row;
	size_t n, cap;
	size_t queues; /* the number of rows that are queues */
	size_t bytes;  /* of all names */
};

/* The figures of STATS, those with labels summed up. Histograms are only in /metrics. */
struct totals {
	char name[TOTALS_NAME]; /* the figure whose rows are being summed up; "" before the first */
	double sum;
};

struct snapshot {
	struct asker asker;
	struct evhttp_request *req;
	enum { ASKS_NODES, ASKS_STATS, ASKS_LOCKS, ASKS_QUEUES, ASKS_HOLDERS } phase;
	struct buf out;
	size_t counted; /* its bytes that are counted in web.snapshots */
	struct buf fields; /* of the locks, as JSON */
	struct buf waiters; /* of the lock whose rows are being read */
	struct totals totals;
	struct listed rows;
	size_t asked, written; /* rows that SHOW was sent for, and rows that are written */
	bool more;
	bool cut; /* LIST has more rows than were taken */
	size_t most;   /* rows of the page */
};

/* --- pages ---------------------------------------------------------------------------------------------------------- */

static struct listed_row *listed_add(struct listed *l, struct span name, bool queue)
{
	struct listed_row *row;

	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->row = mem_grow(l->row, l->cap, sizeof(*l->row));
	}
	row = &l->row[l->n++];
	*row = (struct listed_row){.name = mem_copy(name.p, name.n), .n = name.n, .queue = queue};
	l->queues += queue;
	l->bytes += name.n;
	return row;
}

static int name_order(const struct listed_row *a, const struct listed_row *b)
{
	int order = memcmp(a->name, b->name, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static int row_order(const void *a, const void *b)
{
	const struct listed_row *x = a, *y = b;
	int order = name_order(x, y);

	return order ? order : x->queue - y->queue;
}

/* Keeps n rows, and one more if that has the same name as the last one. */
static void page_end(struct listed *l, size_t n)
{
	if (n > 0 && n < l->n && name_order(&l->row[n - 1], &l->row[n]) == 0)
		n++;
	while (l->n > n) {
		l->n--;
		l->bytes -= l->row[l->n].n;
		l->queues -= l->row[l->n].queue;
		free(l->row[l->n].name);
	}
}

/* If a list has more rows, the page ends with its last row here: the rest belongs to the next page. */
static void page_bound(struct listed *l, bool queue)
{
	size_t last = l->n;

	while (last > 0 && l->row[last - 1].queue != queue)
		last--;
	if (last > 0)
		page_end(l, last);
}

/*
 * Call it when all rows are added. more_locks, more_queues: these lists have further rows. Keeps a page of `most` rows, or one more: the next page begins after
 * a name, so a lock and a queue of one name stay together. Returns whether the page is not the last.
 */
static bool listed_arrange(struct listed *l, size_t most, bool more_locks, bool more_queues)
{
	size_t found;

	if (l->n > 0)
		qsort(l->row, l->n, sizeof(*l->row), row_order);
	if (more_locks)
		page_bound(l, false);
	if (more_queues)
		page_bound(l, true);
	found = l->n;
	page_end(l, most);
	return more_locks || more_queues || l->n < found;
}

static void listed_release(struct listed *l)
{
	page_end(l, 0);
	free(l->row);
}

/* --- totals --------------------------------------------------------------------------------------------------------- */

static bool is_part_of_histogram(struct span name)
{
	static const char *const part[] = {"_bucket", "_sum", "_count"};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		size_t n = strlen(part[i]);

		if (name.n > n && !memcmp(name.p + name.n - n, part[i], n))
			return true;
	}
	return false;
}

static void totals_end(struct totals *t, struct buf *out)
{
	if (!t->name[0])
		return;
	notation_comma(out);
	notation_text(out, span_of(t->name));
	buf_printf(out, ":%.15g", t->sum);
	t->name[0] = '\0';
}

static void totals_add(struct totals *t, struct buf *out, const struct reply_line *row)
{
	struct span name = reply_find(row, "metric"), value = reply_find(row, "value");
	char number[32];

	if (name.n == 0 || name.n >= sizeof(t->name) || value.n >= sizeof(number) || is_part_of_histogram(name))
		return;
	if (!span_equal(span_of(t->name), name)) {
		totals_end(t, out);
		memcpy(t->name, name.p, name.n);
		t->name[name.n] = '\0';
		t->sum = 0;
	}
	snprintf(number, sizeof(number), "%.*s", (int)value.n, value.p);
	t->sum += strtod(number, NULL);
}

/* --- the end -------------------------------------------------------------------------------------------------------- */

/* The caller owns its request. */
static struct evhttp_request *snapshot_free(struct snapshot *s)
{
	struct evhttp_request *req = s->req;
	struct evhttp_connection *c = evhttp_request_get_connection(req);

	if (c)
		evhttp_connection_set_closecb(c, NULL, NULL);
	s->asker.web->snapshots -= s->counted;
	s->asker.web->snapshots_n--;
	asker_close(&s->asker);
	listed_release(&s->rows);
	buf_release(&s->out);
	buf_release(&s->fields);
	buf_release(&s->waiters);
	mem_free(s);
	return req;
}

static void on_close(struct evhttp_connection *c, void *context)
{
	(void)c;
	request_abandoned(snapshot_free(context));
}

static void snapshot_fails(struct snapshot *s, int status, const char *text)
{
	answer_error(snapshot_free(s), status, text);
}

static void snapshot_done(struct snapshot *s)
{
	struct buf out;

	notation_raw(&s->out, s->more ? "],\"more\":true}\n" : "],\"more\":false}\n");
	out = s->out;
	buf_init(&s->out);
	answer_long(snapshot_free(s), TYPE_JSON, &out);
}

/* --- what is asked --- */

static void snapshot_asks(struct snapshot *s, const char *what)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(s->req));
	char line[REPLY_MAX], limit[32] = "";
	size_t n = 0;

	snprintf(line, sizeof(line), "LIST %s", what);
	if (!query_pass(query, "prefix", line, sizeof(line)) || !query_pass(query, "after", line, sizeof(line)) ||
	    !query_pass(query, "limit", line, sizeof(line))) {
		snapshot_fails(s, HTTP_BADREQUEST, "prefix and after are names of at most 512 bytes, limit is a number");
		return;
	}
	if (query_get(query, "limit", limit, sizeof(limit) - 1, &n) == QUERY_FOUND && n > 0)
		s->most = strtoul(limit, NULL, 10); /* LIST refuses it if it is no number */
	asker_send(&s->asker, "%s", line);
}

static void row_ask(struct snapshot *s, const struct listed_row *row)
{
	char quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n = quote((struct span){row->name, row->n}, quoted, sizeof(quoted));

	asker_send(&s->asker, "SHOW %.*s", (int)n, quoted);
}

static void queue_write(struct snapshot *s, const struct listed_row *row)
{
	notation_comma(&s->out);
	buf_append(&s->out, s->fields.data + row->begin, row->end - row->begin);
	notation_raw(&s->out, ",\"holders\":[],\"waiters\":[]}");
}

/* Clients that read large answers slowly, or not at all, must not fill the memory. */
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

	for (; s->written < s->rows.n && s->rows.row[s->written].queue; s->written++)
		queue_write(s, &s->rows.row[s->written]);
	s->asked = s->written;
	if (s->written == s->rows.n || snapshot_is_full(s, buf_length(&s->out))) {
		s->more |= s->written < s->rows.n;
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
	/* Many snapshots may be in progress, and each has its rows before it sends the first. */
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

static void holder_write(struct buf *out, const struct reply_line *line)
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

/* Nobody holds the name, and nobody can get it yet. */
static void kept_write(struct buf *out, const struct reply_line *line)
{
	notation_raw(out, ",\"kept\":{");
	notation_field(out, line, "kept_ms", NULL);
	notation_field(out, line, "ttl_ms", NULL);
	notation_field(out, line, "kept_by", NULL);
	notation_raw(out, "}");
}

/* The first row of an answer begins the object of its lock. kept: the line that says that the name is kept; NULL: there is none. */
static void lock_begin(struct snapshot *s, const struct reply_line *kept)
{
	const struct listed_row *row = &s->rows.row[s->written];

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
	s->written++;
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
	holder_write(out, line);
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
		asker_send(&s->asker, "STATS");
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
		if (s->written == s->asked)
			snapshot_goes_on(s);
		break;
	}
}

/* A client that may look only at some names sees those, but neither stores nor totals. A lock that cannot be shown any more has no holder. Queues are left out
 * while no store answers for them. */
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
	snapshot_fails((struct snapshot *)a, HTTP_SERVUNAVAIL, "the daemon restarts or stops, or has another token: ask again");
}

/* Writes the facts about the server, which come as a row. */
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
	struct peer peer;
	uint32_t *groups = gate_peer(req, &peer);
	bool open;

	s->req = req;
	s->most = ROWS_DEFAULT;
	s->asker.line = on_line;
	s->asker.over = on_over;
	open = w->snapshots_n < AT_ONCE && asker_open(w, &s->asker, &peer);
	free(groups);
	if (!open) {
		mem_free(s);
		answer_error(req, HTTP_SERVUNAVAIL, "too many requests at a time");
		return;
	}
	w->snapshots_n++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, s);
	server_write(s);
	asker_send(&s->asker, "LIST nodes");
}
