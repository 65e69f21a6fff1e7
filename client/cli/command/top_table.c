/* SPDX-License-Identifier: BSD-2-Clause */
/* See top_table.h. */
#include "client/cli/command/top_table.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PAGE_ROWS    10000 /* of one LIST: each goes through all names */
#define LOCKS_KEPT   5000  /* while pages come, twice as many */
#define PAGES_MOST   1000
#define QUEUE_SHOWN  5
#define CELL_BYTES   256
#define LEASE_CELLS  10
#define FIXED_WIDTH  (2 + 7 + 2 + LEASE_CELLS + 1 + 6 + 2 + 5) /* all columns of a lock but its name and its holder */
#define WIDTH_LEAST  60
#define STORES_BYTES 8192

/* --- asking --- */

static struct span field_of(const struct redlock_line *row, const char *field)
{
	struct redlock_bytes value = redlock_line_find(row, field);

	return (struct span){value.p ? value.p : "", value.n};
}

static void top_table_clear(struct top_table *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->lock[i].name);
	b->n = b->after_n = 0;
	b->more = 0;
}

void top_table_release(struct top_table *b)
{
	top_table_clear(b);
	free(b->lock);
	free(b->stores);
}

/* Copies as much as has this width of a text that a terminal may see as it is. */
static char *fit(struct span text, size_t width, char out[CELL_BYTES])
{
	size_t n = MIN(text.n, CELL_BYTES / 2);

	while (n && (shown_width((struct span){text.p, n}) > width || (n < text.n && (text.p[n] & 0xc0) == 0x80)))
		n--;
	memcpy(out, text.p, n);
	out[n] = '\0';
	return out;
}

/* The same of any text. */
static const char *cut(struct span text, size_t width, char out[CELL_BYTES])
{
	char shown[CELL_BYTES / 2];
	size_t n = shown_text(text, shown, sizeof(shown));

	return fit((struct span){shown, n}, width, out);
}

/* Adds blanks up to this width. */
static const char *padded(char *out, size_t width)
{
	size_t n = strlen(out), has = shown_width((struct span){out, n});

	for (; has < width && n < CELL_BYTES - 1; has++)
		out[n++] = ' ';
	out[n] = '\0';
	return out;
}

static const char *cell(struct span text, size_t width, char out[CELL_BYTES])
{
	cut(text, width, out);
	return padded(out, width);
}

#define STORE_BYTES (2 * CELL_BYTES)

/* "joined 0.21 ms", "joined misnamed", "down unreached", "slow 61.50 ms" */
static void store_text(const struct redlock_line *row, char text[STORE_BYTES])
{
	struct span state = field_of(row, "state"), cause = field_of(row, "cause");
	int64_t rtt_us = redlock_line_number(row, "rtt_us", 0);
	char shown[CELL_BYTES], why[CELL_BYTES];

	shown_text(state, shown, sizeof(shown));
	shown_text(cause, why, sizeof(why));
	if (cause.n && !span_equal(cause, state))
		snprintf(text, STORE_BYTES, "%s %s", shown, why);
	else
		snprintf(text, STORE_BYTES, rtt_us ? "%s %" PRId64 ".%02d ms" : "%s", shown, rtt_us / 1000, (int)(rtt_us % 1000 / 10));
}

static void node_row(void *arg, const struct redlock_line *row)
{
	char name[CELL_BYTES], text[STORE_BYTES], out[CELL_BYTES];
	struct top_table *b = arg;
	size_t at = strlen(b->stores);

	b->joined += span_equal(field_of(row, "state"), SPAN("joined"));
	store_text(row, text);
	cell(field_of(row, "node"), 20, name);
	(void)text_add(b->stores, at, STORES_BYTES, "%s%s %s", b->nodes == 0 ? "" : b->nodes % 2 ? "  " : "\n", name,
		       b->nodes % 2 ? fit(span_of(text), 18, out) : padded(fit(span_of(text), 18, out), 18));
	b->nodes++;
}

static int by_name(const void *a, const void *b)
{
	const struct top_table_lock *x = a, *y = b;
	int r = memcmp(x->name, y->name, MIN(x->name_n, y->name_n));

	return r ? r : (x->name_n > y->name_n) - (x->name_n < y->name_n);
}

static int by_held(const void *a, const void *b)
{
	const struct top_table_lock *x = a, *y = b;

	return x->held_ms != y->held_ms ? (x->held_ms < y->held_ms) - (x->held_ms > y->held_ms) : by_name(a, b);
}

static int by_waiters(const void *a, const void *b)
{
	const struct top_table_lock *x = a, *y = b;

	return x->waiters != y->waiters ? (x->waiters < y->waiters) - (x->waiters > y->waiters) : by_held(a, b);
}

/* Sorts, and leaves out those that come last. */
static void locks_sort(struct top_table *b)
{
	static int (*const compare[TOP_TABLE_ORDERS])(const void *, const void *) = {by_waiters, by_held, by_name};

	if (b->n > 0)
		qsort(b->lock, b->n, sizeof(*b->lock), compare[b->order]);
	for (; b->n > LOCKS_KEPT; b->more++)
		free(b->lock[--b->n].name);
}

static void lock_row(void *arg, const struct redlock_line *row)
{
	struct top_table *b = arg;
	struct span name = field_of(row, "name");
	struct top_table_lock *l;

	if (b->failed)
		return;
	if (b->n == 2 * LOCKS_KEPT)
		locks_sort(b);
	b->after_n = MIN(name.n, sizeof(b->after));
	memcpy(b->after, name.p, b->after_n);
	l = &b->lock[b->n];
	*l = (struct top_table_lock){
		.name_n = name.n, .held_ms = redlock_line_number(row, "held_ms", -1), .valid_ms = redlock_line_number(row, "valid_ms", -1)};
	l->name = malloc(name.n + 1);
	b->failed = !l->name;
	if (!l->name)
		return;
	memcpy(l->name, name.p, name.n);
	l->name[name.n] = '\0';
	l->waiters = redlock_line_number(row, "waiters", 0);
	l->alarm = field_of(row, "alarm").n > 0;
	shown_text(field_of(row, "holder"), l->holder, sizeof(l->holder));
	if (span_equal(field_of(row, "kind"), SPAN("semaphore")))
		snprintf(l->holder, sizeof(l->holder), "%" PRId64 " of %" PRId64 " slots", redlock_line_number(row, "held", 0),
			 redlock_line_number(row, "limit", 0));
	else if (redlock_line_number(row, "holders", 1) > 1)
		text_add(l->holder, strlen(l->holder), sizeof(l->holder), " +%" PRId64, redlock_line_number(row, "holders", 1) - 1);
	b->n++;
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	struct top_table *b = arg;
	struct span metric = field_of(row, "metric");
	int64_t value = redlock_line_number(row, "value", 0);

	if (span_equal(metric, SPAN("locks_held")))
		b->locks_held = value;
	else if (span_equal(metric, SPAN("waiters")))
		b->waiters = value;
	else if (span_equal(metric, SPAN("sessions")))
		b->sessions = value;
	else if (span_equal(metric, SPAN("grants_total")))
		b->grants = value;
}

static int hello_ask(struct top_table *b, struct redlock *c)
{
	const struct redlock_line *hello;
	int r = b->server[0] ? 0 : redlock_request(c, "HELLO 1 name=\"redlock top\"", 0, NULL, NULL);

	if (r || b->server[0])
		return r;
	hello = redlock_answer(c);
	shown_text(field_of(hello, "server"), b->server, sizeof(b->server));
	shown_text(field_of(hello, "store"), b->store, sizeof(b->store));
	b->quorum = redlock_line_number(hello, "quorum", 0);
	b->lease_ms = redlock_line_number(hello, "lease_ms", 0);
	return 0;
}

/* Of all pages. A page without rows is the last, even if the daemon announces more. */
static int locks_ask(struct top_table *b, struct redlock *c)
{
	char quoted[4 * NAME_MAX_BYTES + 3], line[sizeof(quoted) + 48];
	int64_t more = 1;
	int r = 0;

	for (unsigned page = 0; !r && more > 0 && page < PAGES_MOST; page++) {
		snprintf(line, sizeof(line), "LIST locks limit=%d", PAGE_ROWS);
		if (page > 0 && (!b->after_n || redlock_quote((struct redlock_bytes){b->after, b->after_n}, quoted, sizeof(quoted))))
			break;
		if (page > 0)
			(void)text_add(line, strlen(line), sizeof(line), " after=%s", quoted);
		b->after_n = 0;
		r = redlock_request(c, line, 0, lock_row, b);
		more = r ? 0 : redlock_line_number(redlock_answer(c), "more", 0);
	}
	b->more += more;
	return r;
}

int top_table_ask(struct top_table *b, struct redlock *c, enum top_table_order order)
{
	int r = hello_ask(b, c);

	b->stores = b->stores ? b->stores : malloc(STORES_BYTES);
	b->lock = b->lock ? b->lock : malloc(2 * LOCKS_KEPT * sizeof(*b->lock));
	if (!b->stores || !b->lock)
		return -ENOMEM;
	b->stores[0] = '\0';
	b->nodes = b->joined = 0;
	b->grants_before = b->grants;
	b->before_us = b->at_us;
	b->order = order;
	top_table_clear(b);
	if (!r)
		r = redlock_request(c, "LIST nodes", 0, node_row, b);
	if (!r)
		r = redlock_request(c, "STATS", 0, figure_row, b);
	b->at_us = redlock_now_us();
	if (!r)
		r = locks_ask(b, c);
	if (r)
		return r;
	locks_sort(b);
	return b->failed ? -ENOMEM : 0;
}

/* --- the lines --- */

static void line_end(FILE *out, const struct top_table_view *view)
{
	/* The next line is cleared before it is written: a line that is full leaves the cursor on its last character. */
	fputs(view->marks ? "\033[0m\r\n\033[K" : "\n", out);
}

static unsigned head_print(FILE *out, const struct top_table *b, const struct top_table_view *view)
{
	char text[CELL_BYTES], shown[CELL_BYTES];
	int64_t took_us = b->at_us - b->before_us;
	const char *at = b->stores;
	unsigned lines = 1;

	snprintf(text, sizeof(text), "%s  %s %" PRId64 "/%" PRId64 "%s  sessions %" PRId64 "  held %" PRId64 "  waiting %" PRId64, b->server, b->store,
		 b->joined, b->nodes, b->joined < b->quorum ? " NO QUORUM" : "", b->sessions, b->locks_held, b->waiters);
	if (b->before_us && took_us > 0)
		text_add(text, strlen(text), sizeof(text), "  grants/s %" PRId64, (b->grants - b->grants_before) * 1000000 / took_us);
	fputs(fit(span_of(text), view->width, shown), out);
	line_end(out, view);
	for (; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n')) {
		fputs(fit((struct span){at, strcspn(at, "\n")}, view->width, shown), out);
		line_end(out, view);
		lines++;
	}
	return lines;
}

/* How much of the lease is left; a lock that a request gave another lease may have more. */
static void lease_text(const struct top_table *b, const struct top_table_lock *l, char out[LEASE_CELLS + 1])
{
	int64_t full = 0, cell_ms = b->lease_ms / LEASE_CELLS;

	if (l->valid_ms > 0 && cell_ms > 0)
		full = l->valid_ms >= b->lease_ms ? LEASE_CELLS : MIN(LEASE_CELLS, (l->valid_ms - 1) / cell_ms + 1);
	memset(out, l->valid_ms < 0 ? ' ' : '.', LEASE_CELLS);
	memset(out, '#', (size_t)full);
	out[LEASE_CELLS] = '\0';
}

static void lock_print(FILE *out, const struct top_table *b, const struct top_table_lock *l, unsigned width)
{
	char name[CELL_BYTES], holder[CELL_BYTES], held[AGE_BYTES] = "", left[AGE_BYTES] = "", lease[LEASE_CELLS + 1];
	unsigned texts = width - FIXED_WIDTH - 2, name_width = texts * 2 / 5;

	lease_text(b, l, lease);
	if (l->held_ms >= 0)
		age_text(l->held_ms, held);
	if (l->valid_ms >= 0)
		age_text(l->valid_ms, left);
	fprintf(out, "%s  %s  %6s%s  %s %6s  %5" PRId64, cell((struct span){l->name, l->name_n}, name_width, name),
		padded(fit(span_of(l->holder), texts - name_width, holder), texts - name_width), held, l->alarm ? "!" : " ", lease, left, l->waiters);
}

static void columns_print(FILE *out, const struct top_table_view *view)
{
	char name[CELL_BYTES], holder[CELL_BYTES];
	unsigned texts = view->width - FIXED_WIDTH - 2, name_width = texts * 2 / 5;

	line_end(out, view);
	fputs(view->marks ? "\033[1m" : "", out);
	fprintf(out, "%s  %s  %6s   %-*s %6s  %5s", cell(SPAN("LOCK"), name_width, name), cell(SPAN("HOLDER"), texts - name_width, holder), "HELD", LEASE_CELLS,
		"LEASE", "LEFT", "WAIT");
	line_end(out, view);
}

struct queue {
	FILE *out;
	const struct top_table_view *view;
	unsigned n;
};

static void queue_row(void *arg, const struct redlock_line *row)
{
	char label[CELL_BYTES], waited[AGE_BYTES] = "";
	struct queue *q = arg;
	struct span who = field_of(row, "name");
	int64_t waited_ms = redlock_line_number(row, "waited_ms", -1);

	if (!span_equal(field_of(row, "role"), SPAN("waiter")) || q->n++ >= QUEUE_SHOWN)
		return;
	if (!who.n)
		who = field_of(row, "holder").n ? field_of(row, "holder") : field_of(row, "peer");
	if (waited_ms >= 0)
		age_text(waited_ms, waited);
	fprintf(q->out, "%3u  %s  %6s", q->n, cell(who, q->view->width - 15, label), waited);
	line_end(q->out, q->view);
}

static int queue_print(FILE *out, const struct top_table_lock *l, struct redlock *c, const struct top_table_view *view)
{
	char quoted[4 * NAME_MAX_BYTES + 3], line[sizeof(quoted) + 8], shown[CELL_BYTES], title[2 * CELL_BYTES];
	struct queue q = {out, view, 0};
	int r = redlock_quote((struct redlock_bytes){l->name, l->name_n}, quoted, sizeof(quoted));

	if (r)
		return 0;
	line_end(out, view);
	shown_text((struct span){l->name, l->name_n}, shown, sizeof(shown));
	snprintf(title, sizeof(title), "The queue of %s: %" PRId64 " %s", shown, l->waiters, l->waiters == 1 ? "waits" : "wait");
	fputs(fit(span_of(title), view->width, shown), out);
	line_end(out, view);
	snprintf(line, sizeof(line), "SHOW %s", quoted);
	r = redlock_request(c, line, 0, queue_row, &q);
	if (!r && q.n > QUEUE_SHOWN) {
		fprintf(out, "     and %u more", q.n - QUEUE_SHOWN);
		line_end(out, view);
	}
	return r;
}

/* How many rows fit; the selected one is among them. */
static size_t rows_fit(const struct top_table *b, struct top_table_view *view, unsigned lines)
{
	unsigned others = lines + 2 + 2 + QUEUE_SHOWN + 2; /* the columns and the queue, each behind an empty line; what is left out of both; the keys */
	size_t fit = view->height == 0 ? b->n : view->height > others + 1 ? view->height - others : 1;

	if (view->selected >= b->n)
		view->selected = b->n ? b->n - 1 : 0;
	if (view->selected < view->top)
		view->top = view->selected;
	if (view->selected >= view->top + fit)
		view->top = view->selected - fit + 1;
	return MIN(fit, b->n - MIN(view->top, b->n));
}

int top_table_print(FILE *out, const struct top_table *b, struct redlock *c, struct top_table_view *view)
{
	unsigned lines;
	size_t fit;

	view->width = MIN(MAX(view->width, WIDTH_LEAST), CELL_BYTES / 2 - 8);
	lines = head_print(out, b, view);
	fit = rows_fit(b, view, lines);
	columns_print(out, view);
	for (size_t i = view->top; i < view->top + fit; i++) {
		fputs(view->marks && i == view->selected ? "\033[7m" : "", out);
		lock_print(out, b, &b->lock[i], view->width);
		line_end(out, view);
	}
	if (b->n - fit + (size_t)b->more > 0) {
		fprintf(out, "and %zu more", b->n - fit + (size_t)b->more);
		line_end(out, view);
	}
	return b->n ? queue_print(out, &b->lock[view->selected], c, view) : 0;
}
