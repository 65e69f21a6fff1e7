/* SPDX-License-Identifier: BSD-2-Clause */
/* top: shows stores and locks, and refreshes them each second in place. It only reads. A signal ends it. */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

#define PAGE_ROWS   10000 /* rows of one LIST: each LIST goes through all names */
#define LOCKS_KEPT  256
#define QUEUE_SHOWN 5
#define CELL_BYTES  256
#define LEASE_CELLS 10
#define FIXED_WIDTH (2 + 7 + 2 + LEASE_CELLS + 1 + 6 + 2 + 5) /* all columns of a lock except its name and its holder */
#define WIDTH_LEAST 60
#define TICK_MS     1000
#define SPARING     5    /* a daemon with very many names spends at most a fifth of its time on this view */
#define TIMEOUT_MS  1000

struct top_lock {
	char name[REDLOCK_NAME_BYTES];
	char holder[96];
	int64_t held_ms, valid_ms; /* -1: not known */
	int64_t waiters;
	bool alarm; /* held for longer than alarm.held */
};

struct top {
	const struct invocation *in;
	struct redlock *c; /* NULL: the daemon is away */
	bool live;         /* it is on a terminal with a cursor */
	FILE *out;
	unsigned width, height; /* size of the terminal; height 0: no limit */

	char server[64], store[32];
	int64_t nodes, joined, quorum, lease_ms;
	int64_t locks_held, waiters, sessions, grants, grants_before; /* from STATS */
	int64_t at_us, before_us;                                     /* when they were read */
	char stores[8192];                                            /* a line for every two stores */
	struct top_lock lock[LOCKS_KEPT]; /* the first ones, over all pages */
	size_t n;
	int64_t more;                     /* locks that are not shown */
};

/* --- cells --- */

/* Copies as much of the text as fits into this width, and pads it with blanks if pad is set. The text is safe for a terminal. Returns out. */
static const char *fit(const char *text, size_t width, bool pad, char out[CELL_BYTES])
{
	size_t whole = strcspn(text, "\n"), n = MIN(whole, CELL_BYTES / 2), has;

	while (n && (shown_width((struct span){text, n}) > width || (n < whole && (text[n] & 0xc0) == 0x80)))
		n--;
	memcpy(out, text, n);
	for (has = shown_width((struct span){text, n}); pad && has < width && n < CELL_BYTES - 1; has++)
		out[n++] = ' ';
	out[n] = '\0';
	return out;
}

/* --- requests --- */

/* Adds a store: "joined 0.21 ms", "joined misnamed", "down unreached", "slow 61.50 ms" */
static void store_row(void *arg, const struct redlock_line *row)
{
	char node[CELL_BYTES], name[CELL_BYTES], state[CELL_BYTES], cause[CELL_BYTES], text[2 * CELL_BYTES], out[CELL_BYTES], rtt[RTT_BYTES];
	int64_t rtt_us = redlock_line_number(row, "rtt_us", 0);
	struct top *t = arg;
	bool second = t->nodes++ % 2;
	size_t at = strlen(t->stores);

	field_show(row, "node", node, sizeof(node));
	field_show(row, "state", state, sizeof(state));
	if (!field_show(row, "cause", cause, sizeof(cause)) && rtt_us)
		strcpy(cause, rtt_text(rtt_us, rtt));
	snprintf(text, sizeof(text), "%s%s%s", state, cause[0] && strcmp(cause, state) != 0 ? " " : "", strcmp(cause, state) != 0 ? cause : "");
	(void)text_add(t->stores, at, sizeof(t->stores), "%s%s %s", second ? "  " : at ? "\n" : "", fit(node, 20, true, name),
		       fit(text, 18, !second, out));
	t->joined += !strcmp(state, "joined");
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	int64_t value = redlock_line_number(row, "value", 0);
	struct top *t = arg;

	if (field_is(row, "metric", "locks_held"))
		t->locks_held = value;
	if (field_is(row, "metric", "waiters"))
		t->waiters = value;
	if (field_is(row, "metric", "sessions"))
		t->sessions = value;
	if (field_is(row, "metric", "grants_total"))
		t->grants = value;
}

/* Locks with the most waiters come first, then those held for longest. */
static bool lock_is_before(const struct top_lock *a, const struct top_lock *b)
{
	if (a->waiters != b->waiters)
		return a->waiters > b->waiters;
	return a->held_ms != b->held_ms ? a->held_ms > b->held_ms : strcmp(a->name, b->name) < 0;
}

static void lock_row(void *arg, const struct redlock_line *row)
{
	struct top_lock l = {.held_ms = redlock_line_number(row, "held_ms", -1), .valid_ms = redlock_line_number(row, "valid_ms", -1)};
	struct span name = field_of(row, "name");
	struct top *t = arg;
	size_t at;

	memcpy(l.name, name.p ? name.p : "", MIN(name.n, sizeof(l.name) - 1));
	l.waiters = redlock_line_number(row, "waiters", 0);
	l.alarm = field_of(row, "alarm").n > 0;
	field_show(row, "holder", l.holder, sizeof(l.holder));
	if (field_is(row, "kind", "semaphore"))
		snprintf(l.holder, sizeof(l.holder), "%" PRId64 " of %" PRId64 " slots", redlock_line_number(row, "held", 0),
			 redlock_line_number(row, "limit", 0));
	else if (redlock_line_number(row, "holders", 1) > 1)
		text_add(l.holder, strlen(l.holder), sizeof(l.holder), " +%" PRId64, redlock_line_number(row, "holders", 1) - 1);
	for (at = t->n; at > 0 && lock_is_before(&l, &t->lock[at - 1]); at--)
		;
	t->more += t->n == LOCKS_KEPT;
	if (at == LOCKS_KEPT)
		return;
	t->n = MIN(t->n, LOCKS_KEPT - 1);
	memmove(&t->lock[at + 1], &t->lock[at], (t->n - at) * sizeof(l));
	t->lock[at] = l;
	t->n++;
}

static int top_ask(struct top *t)
{
	struct redlock_page page = {.size = sizeof(page), .limit = PAGE_ROWS};
	int r = t->server[0] ? 0 : hello(t->c, "redlock top");

	if (!r && !t->server[0]) {
		field_show(redlock_answer(t->c), "server", t->server, sizeof(t->server));
		field_show(redlock_answer(t->c), "store", t->store, sizeof(t->store));
		t->quorum = redlock_line_number(redlock_answer(t->c), "quorum", 0);
		t->lease_ms = redlock_line_number(redlock_answer(t->c), "lease_ms", 0);
	}
	t->stores[0] = '\0';
	t->nodes = t->joined = t->more = 0;
	t->n = 0;
	t->grants_before = t->grants;
	t->before_us = t->at_us;
	if (!r)
		r = redlock_list(t->c, REDLOCK_NODES, NULL, store_row, t);
	if (!r)
		r = redlock_stats(t->c, figure_row, t);
	t->at_us = redlock_now_us();
	if (!r)
		r = list_all(t->c, REDLOCK_LOCKS, &page, lock_row, t);
	t->more += page.more;
	return r;
}

/* --- the lines --- */

static void line_end(const struct top *t)
{
	/* The next line is cleared before it is written, because a full line leaves the cursor on its last character. */
	fputs(t->live ? "\033[0m\n\033[K" : "\n", t->out);
}

/* Prints one or several lines that are safe for a terminal. Returns how many. */
static unsigned lines_print(const struct top *t, const char *text)
{
	char out[CELL_BYTES];
	unsigned lines = 0;

	for (; *text; lines++) {
		size_t n = strcspn(text, "\n");

		fputs(fit(text, t->width, false, out), t->out);
		line_end(t);
		text += n + (text[n] == '\n');
	}
	return lines;
}

static unsigned head_print(const struct top *t)
{
	int64_t took_us = t->at_us - t->before_us;
	char text[CELL_BYTES];

	snprintf(text, sizeof(text), "%s  %s %" PRId64 "/%" PRId64 "%s  sessions %" PRId64 "  held %" PRId64 "  waiting %" PRId64, t->server, t->store,
		 t->joined, t->nodes, t->joined < t->quorum ? " NO QUORUM" : "", t->sessions, t->locks_held, t->waiters);
	if (t->before_us && took_us > 0)
		text_add(text, strlen(text), sizeof(text), "  grants/s %" PRId64, (t->grants - t->grants_before) * 1000000 / took_us);
	return lines_print(t, text) + lines_print(t, t->stores);
}

/* Draws how much of the lease is left. A lock for which a request asked for another lease may have more. */
static void lease_text(const struct top *t, const struct top_lock *l, char out[LEASE_CELLS + 1])
{
	int64_t full = 0, cell_ms = t->lease_ms / LEASE_CELLS;

	if (l->valid_ms > 0 && cell_ms > 0)
		full = l->valid_ms >= t->lease_ms ? LEASE_CELLS : MIN(LEASE_CELLS, (l->valid_ms - 1) / cell_ms + 1);
	memset(out, l->valid_ms < 0 ? ' ' : '.', LEASE_CELLS);
	memset(out, '#', (size_t)full);
	out[LEASE_CELLS] = '\0';
}

static void row_print(const struct top *t, const char *name, const char *holder, const char *held, const char *lease, const char *left, const char *waiters)
{
	char first[CELL_BYTES], second[CELL_BYTES];
	unsigned texts = t->width - FIXED_WIDTH - 2, name_width = texts * 2 / 5;

	fprintf(t->out, "%s  %s  %7s  %-*s %6s  %5s", fit(name, name_width, true, first), fit(holder, texts - name_width, true, second), held, LEASE_CELLS,
		lease, left, waiters);
	line_end(t);
}

static void lock_print(const struct top *t, const struct top_lock *l)
{
	char name[SHOWN_BYTES], age[AGE_BYTES], held[AGE_BYTES + 1] = " ", left[AGE_BYTES] = "", lease[LEASE_CELLS + 1], waiters[24];

	lease_text(t, l, lease);
	if (l->held_ms >= 0)
		snprintf(held, sizeof(held), "%s%s", age_text(l->held_ms, age), l->alarm ? "!" : " ");
	if (l->valid_ms >= 0)
		age_text(l->valid_ms, left);
	snprintf(waiters, sizeof(waiters), "%" PRId64, l->waiters);
	row_print(t, shown(l->name, name), l->holder, held, lease, left, waiters);
}

struct queue {
	const struct top *top;
	unsigned n;
};

static void queue_row(void *arg, const struct redlock_line *row)
{
	char label[CELL_BYTES / 2], out[CELL_BYTES], waited[AGE_BYTES] = "";
	struct queue *q = arg;
	struct span who = field_of(row, "name");
	int64_t waited_ms = redlock_line_number(row, "waited_ms", -1);

	if (!field_is(row, "role", "waiter") || q->n++ >= QUEUE_SHOWN)
		return;
	if (!who.n)
		who = field_of(row, "holder").n ? field_of(row, "holder") : field_of(row, "peer");
	if (waited_ms >= 0)
		age_text(waited_ms, waited);
	shown_text(who, label, sizeof(label));
	fprintf(q->top->out, "%3u  %s  %6s", q->n, fit(label, q->top->width - 15, true, out), waited);
	line_end(q->top);
}

/* Prints the queue of the first lock, which has the most waiters. */
static int queue_print(const struct top *t)
{
	const struct top_lock *l = t->lock;
	char name[SHOWN_BYTES], title[2 * CELL_BYTES];
	struct queue q = {t, 0};
	int r;

	line_end(t);
	snprintf(title, sizeof(title), "The queue of %s: %" PRId64 " %s", shown(l->name, name), l->waiters, l->waiters == 1 ? "waits" : "wait");
	(void)lines_print(t, title);
	r = redlock_show(t->c, l->name, NULL, queue_row, &q);
	if (!r && q.n > QUEUE_SHOWN) {
		fprintf(t->out, "     and %u more", q.n - QUEUE_SHOWN);
		line_end(t);
	}
	return r;
}

static int top_print(struct top *t)
{
	unsigned lines;
	size_t fits = t->n;

	t->width = MIN(MAX(t->width, WIDTH_LEAST), CELL_BYTES / 2 - 8);
	lines = head_print(t) + 2 + 2 + QUEUE_SHOWN + 3; /* heading and queue, each after an empty line; what is left out of both; the cursor */
	if (t->height > 0)
		fits = MIN(fits, t->height > lines + 1 ? t->height - lines : 1);
	line_end(t);
	fputs(t->live ? "\033[1m" : "", t->out);
	row_print(t, "LOCK", "HOLDER", "HELD ", "LEASE", "LEFT", "WAIT");
	for (size_t i = 0; i < fits; i++)
		lock_print(t, &t->lock[i]);
	if (t->n - fits + (size_t)t->more > 0) {
		fprintf(t->out, "and %zu more", t->n - fits + (size_t)t->more);
		line_end(t);
	}
	return t->n ? queue_print(t) : 0;
}

/* --- the loop --- */

static void top_ask_and_print(struct top *t)
{
	const char *hint = "; on its host, systemctl status redlockd may say why";
	char why[CELL_BYTES];
	int r = t->c ? 0 : redlock_open(t->in->addr, TIMEOUT_MS, &t->c);

	if (r) {
		hint = absence_hint(r);
		t->c = NULL;
	} else if (!top_ask(t) && !top_print(t)) {
		return;
	}
	shown_text(span_of(redlock_errmsg(t->c)), why, sizeof(why));
	fprintf(t->out, "%s%s", why, hint);
	line_end(t);
	redlock_close(t->c);
	t->c = NULL;
	t->server[0] = '\0'; /* the next daemon may be another one … */
	t->at_us = 0; /* … and starts its counters at 0 */
}

/* Prints no more lines than the terminal has. One more would move the first line out of sight. */
static void top_draw(struct top *t)
{
	struct winsize size = {.ws_col = 0};
	char *text = NULL, *end;
	size_t n = 0;

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	t->width = size.ws_col ? size.ws_col : 80;
	t->height = size.ws_row ? size.ws_row : 24;
	t->out = open_memstream(&text, &n);
	if (!t->out)
		return;
	top_ask_and_print(t);
	if (fclose(t->out))
		return;
	end = text;
	for (unsigned lines = 1; lines < t->height && (end = strchr(end, '\n')); lines++)
		end++;
	printf("\033[H\033[K%.*s\033[J", end ? (int)(end - text) - 1 : (int)n, text);
	free(text);
}

static int top_live(struct top *t)
{
	const char *type = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !type || !*type || !strcmp(type, "dumb")) {
		complain("top needs a terminal with a cursor to move, and TERM that says so; top --once prints what it would show");
		return EX_USAGE;
	}
	t->live = true;
	for (;;) {
		int64_t began_us = redlock_now_us(), took_ms;

		top_draw(t);
		if (!output_flush())
			return EX_UNAVAILABLE;
		took_ms = (redlock_now_us() - began_us) / 1000;
		(void)poll(NULL, 0, (int)MAX(TICK_MS - took_ms, t->c ? took_ms * (SPARING - 1) : 0));
	}
}

static int top_once(struct top *t)
{
	int r;

	t->c = dial(t->in->addr);
	if (!t->c)
		return EX_UNAVAILABLE;
	t->width = 80;
	t->out = stdout;
	r = top_ask(t);
	r = exit_of(t->c, r ? r : top_print(t));
	redlock_close(t->c);
	return r;
}

int top_main(const struct invocation *in)
{
	static struct top t;

	t.in = in;
	return in->once ? top_once(&t) : top_live(&t);
}
