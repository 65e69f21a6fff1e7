/* SPDX-License-Identifier: BSD-2-Clause */
/* top: a view of stores and locks that is drawn anew each second. It reads, and changes nothing. */
#include "client/cli/command/commands.h"
#include "client/cli/command/screen.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/field.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
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

#define TICK_MS    1000
#define SPARING    5    /* a daemon with very many names does not spend more than a fifth of its time on this view */
#define TIMEOUT_MS 1000
#define PAGE_KEYS  10 /* rows that a key of a page goes by */

enum top_table_order {
	TOP_TABLE_CONTENDED, /* the most waiters first, then the longest held */
	TOP_TABLE_HELD,      /* the longest held first */
	TOP_TABLE_NAME,
	TOP_TABLE_ORDERS
};

struct top_table_lock {
	char *name; /* NUL-terminated; name_n bytes before that */
	size_t name_n;
	char holder[96];
	int64_t held_ms, valid_ms; /* -1: not told */
	int64_t waiters;
	bool alarm; /* held for longer than alarm.held */
};

struct top_table {
	char server[64], store[32];
	int64_t nodes, joined, quorum, lease_ms;
	int64_t locks_held, waiters, sessions, grants, grants_before; /* figures of STATS */
	int64_t at_us, before_us;                                     /* when these were asked */
	char *stores;                                                 /* a line for each two stores */
	struct top_table_lock *lock;
	size_t n;
	int64_t more;          /* locks that are left out: of several pages the first ones of the order are kept */
	enum top_table_order order;
	size_t rows;           /* of the last page */
	bool failed;           /* out of memory */
};

struct top_table_view {
	unsigned width, height; /* of the terminal; height 0: all lines */
	size_t selected, top;   /* rows: whose queue is shown, and the first that is shown */
	enum top_table_order order;
	bool marks; /* mark the selected row, and the header */
};

/* --- asking --- */

static void top_table_clear(struct top_table *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->lock[i].name);
	b->n = 0;
	b->more = 0;
}

static void top_table_release(struct top_table *b)
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
	int64_t rtt_us = redlock_line_number(row, "rtt_us", 0);
	char shown[CELL_BYTES], why[CELL_BYTES];

	field_show(row, "state", shown, sizeof(shown));
	if (field_show(row, "cause", why, sizeof(why)) && strcmp(why, shown) != 0)
		snprintf(text, STORE_BYTES, "%s %s", shown, why);
	else
		snprintf(text, STORE_BYTES, rtt_us ? "%s %" PRId64 ".%02d ms" : "%s", shown, rtt_us / 1000, (int)(rtt_us % 1000 / 10));
}

static void node_row(void *arg, const struct redlock_line *row)
{
	char name[CELL_BYTES], text[STORE_BYTES], out[CELL_BYTES];
	struct top_table *b = arg;
	size_t at = strlen(b->stores);

	b->joined += field_is(row, "state", "joined");
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

	b->rows++;
	if (b->failed)
		return;
	if (b->n == 2 * LOCKS_KEPT)
		locks_sort(b);
	l = &b->lock[b->n];
	*l = (struct top_table_lock){
		.name_n = name.n, .held_ms = redlock_line_number(row, "held_ms", -1), .valid_ms = redlock_line_number(row, "valid_ms", -1)};
	l->name = malloc(name.n + 1);
	b->failed = !l->name;
	if (!l->name)
		return;
	memcpy(l->name, name.p ? name.p : "", name.n);
	l->name[name.n] = '\0';
	l->waiters = redlock_line_number(row, "waiters", 0);
	l->alarm = field_of(row, "alarm").n > 0;
	field_show(row, "holder", l->holder, sizeof(l->holder));
	if (field_is(row, "kind", "semaphore"))
		snprintf(l->holder, sizeof(l->holder), "%" PRId64 " of %" PRId64 " slots", redlock_line_number(row, "held", 0),
			 redlock_line_number(row, "limit", 0));
	else if (redlock_line_number(row, "holders", 1) > 1)
		text_add(l->holder, strlen(l->holder), sizeof(l->holder), " +%" PRId64, redlock_line_number(row, "holders", 1) - 1);
	b->n++;
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	struct top_table *b = arg;
	int64_t value = redlock_line_number(row, "value", 0);

	if (field_is(row, "metric", "locks_held"))
		b->locks_held = value;
	else if (field_is(row, "metric", "waiters"))
		b->waiters = value;
	else if (field_is(row, "metric", "sessions"))
		b->sessions = value;
	else if (field_is(row, "metric", "grants_total"))
		b->grants = value;
}

static int hello_ask(struct top_table *b, struct redlock *c)
{
	int r = b->server[0] ? 0 : hello(c, "redlock top");

	if (r || b->server[0])
		return r;
	field_show(redlock_answer(c), "server", b->server, sizeof(b->server));
	field_show(redlock_answer(c), "store", b->store, sizeof(b->store));
	b->quorum = redlock_line_number(redlock_answer(c), "quorum", 0);
	b->lease_ms = redlock_line_number(redlock_answer(c), "lease_ms", 0);
	return 0;
}

/* Of all pages. A page without rows is the last, even if the daemon announces more. */
static int locks_ask(struct top_table *b, struct redlock *c)
{
	struct redlock_page page = {.size = sizeof(page), .limit = PAGE_ROWS};
	int r = 0;

	b->rows = page.more = 1;
	for (unsigned n = 0; !r && b->rows > 0 && page.more > 0 && n < PAGES_MOST; n++) {
		b->rows = 0;
		r = redlock_list(c, REDLOCK_LOCKS, &page, lock_row, b);
	}
	b->more += page.more;
	return r;
}

static int top_table_ask(struct top_table *b, struct redlock *c, enum top_table_order order)
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
		r = redlock_list(c, REDLOCK_NODES, NULL, node_row, b);
	if (!r)
		r = redlock_stats(c, figure_row, b);
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

	if (!field_is(row, "role", "waiter") || q->n++ >= QUEUE_SHOWN)
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
	char shown[CELL_BYTES], title[2 * CELL_BYTES];
	struct queue q = {out, view, 0};
	int r;

	line_end(out, view);
	shown_text((struct span){l->name, l->name_n}, shown, sizeof(shown));
	snprintf(title, sizeof(title), "The queue of %s: %" PRId64 " %s", shown, l->waiters, l->waiters == 1 ? "waits" : "wait");
	fputs(fit(span_of(title), view->width, shown), out);
	line_end(out, view);
	r = redlock_show(c, l->name, NULL, queue_row, &q);
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

static int top_table_print(FILE *out, const struct top_table *b, struct redlock *c, struct top_table_view *view)
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

/* --- the loop --- */

struct top {
	const struct invocation *in;
	struct redlock *c; /* NULL: the daemon is away */
	char why[256];
	const char *hint; /* after it */
	struct top_table table;
	struct top_table_view view;
};

/* What went wrong, as a terminal may see it. */
static void top_note(struct top *t, const char *hint)
{
	t->hint = hint;
	shown_text(span_of(redlock_errmsg(t->c)), t->why, sizeof(t->why));
}

static void top_leave(struct top *t)
{
	top_note(t, "; on its host, systemctl status redlockd may say why");
	redlock_close(t->c);
	t->c = NULL;
	t->table.server[0] = '\0'; /* the next one may be another, … */
	t->table.at_us = 0; /* … and counts from 0 */
}

static void top_draw(struct top *t)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int r = -1;

	if (!out)
		return;
	screen_size(&t->view.width, &t->view.height);
	if (t->c)
		r = top_table_print(out, &t->table, t->c, &t->view);
	if (r && t->c)
		top_leave(t);
	if (!t->c)
		fprintf(out, "%s%s\r\n\033[K", t->why, t->hint);
	fputs("q quits; up and down choose a lock, left and right the order\r", out);
	fclose(out);
	screen_draw(text, n);
	free(text);
}

/* The selected lock stays selected, wherever it stands now. */
static void top_ask(struct top *t)
{
	struct top_table *b = &t->table;
	int r = 0;
	char *selected = t->view.selected < b->n ? strdup(b->lock[t->view.selected].name) : NULL;

	if (!t->c && (r = redlock_open(t->in->addr, TIMEOUT_MS, &t->c))) {
		t->c = NULL;
		top_note(t, absence_hint(r));
	}
	if (t->c && top_table_ask(b, t->c, t->view.order))
		top_leave(t);
	for (size_t i = 0; selected && t->view.selected > 0 && i < b->n; i++)
		if (!strcmp(b->lock[i].name, selected)) {
			t->view.selected = i;
			break;
		}
	free(selected);
}

/* False: the user quits. */
static bool top_key(struct top *t, enum screen_key key)
{
	struct top_table_view *v = &t->view;
	size_t last = t->table.n ? t->table.n - 1 : 0;

	if (key == KEY_UP || key == KEY_PAGE_UP)
		v->selected -= key == KEY_UP ? v->selected > 0 : v->selected < PAGE_KEYS ? v->selected : PAGE_KEYS;
	if (key == KEY_DOWN || key == KEY_PAGE_DOWN)
		v->selected += key == KEY_DOWN ? v->selected < last : last - v->selected < PAGE_KEYS ? last - v->selected : PAGE_KEYS;
	if (key == KEY_LEFT || key == KEY_RIGHT) {
		v->order = (v->order + (key == KEY_LEFT ? TOP_TABLE_ORDERS - 1 : 1)) % TOP_TABLE_ORDERS;
		v->selected = 0;
	}
	return key != KEY_QUIT;
}

static void top_loop(struct top *t)
{
	int64_t due_us = 0, now, took_us;
	enum screen_key key = KEY_NONE;

	while (top_key(t, key)) {
		now = redlock_now_us();
		if (now >= due_us || key == KEY_LEFT || key == KEY_RIGHT) {
			top_ask(t);
			took_us = redlock_now_us() - now;
			due_us = now + MAX(TICK_MS * 1000, took_us * SPARING);
		}
		top_draw(t);
		key = screen_key((due_us - redlock_now_us()) / 1000 + 1);
	}
}

static int top_once(struct top *t)
{
	int r;

	t->c = dial(t->in->addr);
	if (!t->c)
		return EX_UNAVAILABLE;
	r = top_table_ask(&t->table, t->c, TOP_TABLE_CONTENDED);
	t->view.width = 80;
	if (!r)
		r = top_table_print(stdout, &t->table, t->c, &t->view);
	r = exit_of(t->c, r);
	return r;
}

int top_main(const struct invocation *in)
{
	struct top t = {.in = in, .view.marks = !in->once};
	int r = EXIT_SUCCESS;

	if (in->once) {
		r = top_once(&t);
	} else if (screen_open()) {
		top_loop(&t);
		screen_close();
	} else {
		complain("top needs a terminal with a cursor to move, and TERM that says so; top --once prints what it would show");
		r = EX_USAGE;
	}
	top_table_release(&t.table);
	redlock_close(t.c);
	return r;
}
