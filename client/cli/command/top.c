/* SPDX-License-Identifier: BSD-2-Clause */
/* top: a view of stores and locks that is drawn anew each second. It reads, and changes nothing. */
#include "client/cli/command/commands.h"
#include "client/cli/command/screen.h"
#include "client/cli/command/top_table.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/lib/display.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TICK_MS    1000
#define SPARING    5    /* a daemon with very many names does not spend more than a fifth of its time on this view */
#define TIMEOUT_MS 1000
#define PAGE_ROWS  10

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
		v->selected -= key == KEY_UP ? v->selected > 0 : v->selected < PAGE_ROWS ? v->selected : PAGE_ROWS;
	if (key == KEY_DOWN || key == KEY_PAGE_DOWN)
		v->selected += key == KEY_DOWN ? v->selected < last : last - v->selected < PAGE_ROWS ? last - v->selected : PAGE_ROWS;
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
