/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in line. The status line is written on a terminal only, and asks over a connection of its own, since the request that
 * waits occupies the other one.
 */
#include "client/cli_wait.h"
#include "client/person.h"
#include "proto/proto.h"
#include "proto/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TICK_MS      1000
#define SIDE_MS      300 /* what the status line may take to find out */
#define QUOTED_BYTES (4 * NAME_MAX_BYTES + 3)
#define LABEL_BYTES  200

struct waiting {
	const struct invocation *in;
	struct redlock *c, *side;
	char session[64]; /* our own id; "" if not told */
	int64_t began_us;
	bool terminal, drawn;
};

/* Who stands where, from the rows of SHOW. */
struct place {
	const char *session; /* whose position is looked for */
	int64_t position;    /* 0: not in line */
	char holder[LABEL_BYTES];
	int64_t held_ms; /* -1: not told */
};

static size_t text_add(char *out, size_t at, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));

static size_t text_add(char *out, size_t at, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out + at, size - at, format, args);
	va_end(args);
	return n < 0 || (size_t)n >= size - at ? size - 1 : at + (size_t)n;
}

static struct span field_of(const struct redlock_line *line, const char *field)
{
	struct redlock_bytes value = redlock_line_find(line, field);

	return (struct span){value.p, value.n};
}

/* As BUSY tells it: a holder of another daemon by "holder", one of this daemon by its session. */
static void holder_show(const struct redlock_line *row, char *out, size_t size)
{
	struct span holder = field_of(row, "holder"), label = field_of(row, "name"), peer = field_of(row, "peer");
	int64_t pid = redlock_line_number(row, "pid", -1);
	size_t at;

	if (!holder.p && !label.p && !peer.p)
		holder = SPAN("somebody else");
	at = shown_text(holder.p ? holder : label, out, size);
	if (holder.p)
		return;
	if (pid >= 0)
		text_add(out, at, size, "%spid=%" PRId64 " uid=%" PRId64, at ? " " : "", pid,
			 redlock_line_number(row, "uid", -1));
	else if (peer.p && at + 10 < size) {
		at = text_add(out, at, size, "%s", at ? " " : "");
		shown_text(peer, out + at, size - at);
	}
}

static void place_row(void *arg, const struct redlock_line *row)
{
	struct place *place = arg;
	struct span role = field_of(row, "role");

	if (span_equal(role, SPAN("waiter")) && span_equal(field_of(row, "session"), span_of(place->session)))
		place->position = redlock_line_number(row, "pos", 0);
	if (!span_equal(role, SPAN("holder")))
		return;
	holder_show(row, place->holder, sizeof(place->holder));
	place->held_ms = redlock_line_number(row, "held_ms", -1);
}

static int place_ask(struct redlock *c, const char *name, struct place *place)
{
	char quoted[QUOTED_BYTES], line[QUOTED_BYTES + 8];
	int r = redlock_quote((struct redlock_bytes){name, strlen(name)}, quoted, sizeof(quoted));

	place->holder[0] = '\0';
	place->position = 0;
	place->held_ms = -1;
	if (r)
		return r;
	snprintf(line, sizeof(line), "SHOW %s", quoted);
	return redlock_request(c, line, 0, place_row, place);
}

/* --- the status line --- */

static const char *ordinal(int64_t n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

static void status_text(const struct waiting *w, const struct place *place, char *out, size_t size)
{
	int64_t seconds = (redlock_now_us() - w->began_us) / 1000000;
	char name[LABEL_BYTES], age[AGE_BYTES];
	size_t at;

	shown_text(span_of(w->in->operand), name, sizeof(name));
	at = text_add(out, 0, size, "waiting for %s  %02d:%02d", name, (int)(seconds / 60), (int)(seconds % 60));
	if (place->position > 0)
		at = text_add(out, at, size, "  %" PRId64 "%s in line", place->position, ordinal(place->position));
	if (place->holder[0])
		at = text_add(out, at, size, "%s held by %s", place->position > 0 ? "," : " ", place->holder);
	if (place->holder[0] && place->held_ms >= 0)
		text_add(out, at, size, " for %s", age_text(place->held_ms, age));
}

/* Cuts to the width of the terminal, if it tells one, so that the line can be rewritten in place. */
static void text_cut(char *text)
{
	struct winsize size = {.ws_col = 0};
	size_t n = strlen(text);

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return;
	while (n && (shown_width((struct span){text, n}) >= size.ws_col || (text[n] & 0xc0) == 0x80))
		text[--n] = '\0';
}

static void status_draw(struct waiting *w)
{
	struct place place = {.session = w->session, .held_ms = -1};
	char text[600];

	if (!w->side && redlock_open(w->in->addr, SIDE_MS, &w->side))
		w->side = NULL;
	if (w->side && place_ask(w->side, w->in->operand, &place)) {
		redlock_close(w->side);
		w->side = NULL;
	}
	status_text(w, &place, text, sizeof(text));
	text_cut(text);
	fprintf(stderr, "\r%s\033[K", text);
	w->drawn = true;
}

static void status_clear(struct waiting *w)
{
	if (w->drawn)
		fprintf(stderr, "\r\033[K");
	redlock_close(w->side);
}

/* --- the request --- */

/* The outcome of the LOCK that was sent; -ETIMEDOUT when the daemon has not even said TIMEOUT. */
static int answer_await(struct waiting *w)
{
	int64_t limit_us = w->in->wait_ms < 0 ? INT64_MAX : (w->in->wait_ms + ANSWER_TIMEOUT_MS) * 1000, left_ms;
	int r;

	for (;;) {
		left_ms = limit_us == INT64_MAX ? REDLOCK_FOREVER : (limit_us - (redlock_now_us() - w->began_us)) / 1000;
		if (limit_us != INT64_MAX && left_ms <= 0)
			return -ETIMEDOUT;
		r = redlock_finish(w->c, w->terminal && (left_ms < 0 || left_ms > TICK_MS) ? TICK_MS : left_ms);
		if (r != -EAGAIN)
			return r;
		if (w->terminal)
			status_draw(w);
	}
}

/* Its own id, to know its place in line. The label is what others see. */
static int hello(struct waiting *w)
{
	const char *user = getenv("USER") ? getenv("USER") : getenv("LOGNAME"), *word = strrchr(w->in->argv[0], '/');
	char label[LABEL_BYTES], quoted[4 * LABEL_BYTES + 3], line[sizeof(quoted) + 32];
	struct redlock_bytes id;
	int r;

	snprintf(label, sizeof(label), "redlock run %.80s%s%.40s", word ? word + 1 : w->in->argv[0], user ? "/" : "",
		 user ? user : "");
	r = redlock_quote((struct redlock_bytes){label, strlen(label)}, quoted, sizeof(quoted));
	if (r)
		return r;
	snprintf(line, sizeof(line), "HELLO 1 name=%s", quoted);
	r = redlock_request(w->c, line, 0, NULL, NULL);
	if (r)
		return r;
	id = redlock_line_find(redlock_answer(w->c), "session");
	snprintf(w->session, sizeof(w->session), "%.*s", (int)id.n, id.p ? id.p : "");
	return 0;
}

/* What was cut in the middle of its last character loses that character. */
static size_t text_whole(const char *text, size_t n)
{
	size_t begin = n;

	while (begin > 0 && n - begin < 4 && (text[begin - 1] & 0xc0) == 0x80)
		begin--;
	if (begin == 0 || !(text[--begin] & 0x80))
		return n;
	return utf8_length((struct span){text + begin, n - begin}) ? n : begin;
}

/* The command line; cut where a character begins. */
static void note_make(const struct invocation *in, char out[NOTE_BYTES + 1])
{
	size_t at = 0, i;

	out[0] = '\0';
	if (in->note)
		at = text_add(out, at, NOTE_BYTES + 1, "%s", in->note);
	for (i = 0; !in->note && in->argv[i]; i++)
		at = text_add(out, at, NOTE_BYTES + 1, "%s%s", i ? " " : "", in->argv[i]);
	out[at == NOTE_BYTES ? text_whole(out, at) : at] = '\0';
}

static int lock_send(struct waiting *w)
{
	char note[NOTE_BYTES + 1];
	struct redlock_options options = {.wait_ms = w->in->wait_ms, .ttl_ms = w->in->ttl_ms};

	note_make(w->in, note);
	if (note[0])
		options.note = note;
	w->began_us = redlock_now_us();
	return redlock_lock_send(w->c, w->in->operand, &options);
}

/* TIMEOUT names no holder: SHOW does. */
static int not_acquired(struct waiting *w, int outcome)
{
	struct place place = {.session = w->session};
	char name[LABEL_BYTES], age[AGE_BYTES];

	if (outcome == REDLOCK_BUSY || place_ask(w->c, w->in->operand, &place) || !place.holder[0]) {
		complain("%s", redlock_errmsg(w->c));
		return w->in->busy_exit;
	}
	shown_text(span_of(w->in->operand), name, sizeof(name));
	if (place.held_ms < 0)
		complain("%s is held by %s", name, place.holder);
	else
		complain("%s is held by %s for %s", name, place.holder, age_text(place.held_ms, age));
	return w->in->busy_exit;
}

bool lock_acquire(const struct invocation *in, struct redlock *c, struct redlock_grant *ret_grant, int *ret_exit)
{
	struct waiting w = {.in = in, .c = c, .terminal = isatty(STDERR_FILENO)};
	struct redlock_grant granted;
	int r = hello(&w);

	if (!r)
		r = lock_send(&w);
	if (!r)
		r = answer_await(&w);
	status_clear(&w);
	/* What is left is counted from a CHECK: the LOCK may have waited for an hour. Its ttl stands in the first answer only. */
	if (!r && redlock_grant(c, &granted))
		granted.ttl_ms = 0;
	if (!r)
		r = redlock_check(c, in->operand, ret_grant);
	if (!r) {
		ret_grant->ttl_ms = ret_grant->ttl_ms ? ret_grant->ttl_ms : granted.ttl_ms;
		return true;
	}
	*ret_exit = EXIT_FAILED;
	if (r == REDLOCK_BUSY || r == REDLOCK_TIMEOUT)
		*ret_exit = not_acquired(&w, r);
	else
		complain("%s", r == -ETIMEDOUT ? "redlockd does not answer" : redlock_errmsg(c));
	return false;
}
