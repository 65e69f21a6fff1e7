/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in line, over however many connections it takes. The status line is written on a terminal only; elsewhere a line says, once, that too few stores answer for
 * anybody to get a lock. Both ask over a connection of their own, since the request that waits occupies the other one.
 */
#include "client/cli_wait.h"
#include "client/person.h"
#include "client/place.h"
#include "client/shortage.h"
#include "proto/proto.h"
#include "proto/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

#define TICK_US      1000000
#define AGAIN_US     30000000 /* where there is no terminal */
#define SIDE_MS      300 /* what the status line may take to find out */

struct waiting {
	struct turn *turn;
	struct redlock *side;
	int64_t began_us, next_us; /* next_us: when the stores are to be looked at, or the status line is due; INT64_MAX: never */
	bool terminal, drawn;
};

/* --- the status line --- */

static const char *ordinal(int64_t n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

static void status_text(const struct waiting *w, const struct place *place, const char *shortage, char *out, size_t size)
{
	int64_t seconds = (redlock_now_us() - w->began_us) / 1000000;
	char name[LABEL_BYTES], age[AGE_BYTES];
	size_t at;

	shown_text(span_of(w->turn->in->operand), name, sizeof(name));
	at = text_add(out, 0, size, "waiting for %s  %02d:%02d", name, (int)(seconds / 60), (int)(seconds % 60));
	if (redlock_away(w->turn->c))
		at = text_add(out, at, size, "  redlockd is away");
	if (place->position > 0)
		at = text_add(out, at, size, "  %" PRId64 "%s in line", place->position, ordinal(place->position));
	if (place->holder[0])
		at = text_add(out, at, size, "%s held by %s", place->position > 0 ? "," : " ", place->holder);
	if (place->holder[0] && place->held_ms >= 0)
		text_add(out, at, size, " for %s", age_text(place->held_ms, age));
	if (place->kept_ms >= 0)
		text_add(out, at, size, "%s kept for %s", place->position > 0 ? "," : " ", age_text(place->kept_ms, age));
	if (shortage[0])
		text_add(out, at, size, "%s %s", place->position > 0 ? "," : " ", shortage);
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

static bool side_open(struct waiting *w)
{
	if (!w->side && redlock_open(w->turn->in->addr, SIDE_MS, &w->side))
		w->side = NULL;
	return w->side != NULL;
}

static void side_close(struct waiting *w)
{
	redlock_close(w->side);
	w->side = NULL;
}

static void status_draw(struct waiting *w)
{
	struct place place = {.session = redlock_session_id(w->turn->c), .held_ms = -1, .kept_ms = -1};
	char text[600], shortage[SHORTAGE_BYTES] = "";

	if (side_open(w) && (place_ask(w->side, w->turn->in->operand, &place) || (place.unknown && shortage_ask(w->side, shortage))))
		side_close(w);
	status_text(w, &place, shortage, text, sizeof(text));
	text_cut(text);
	/* A turn that comes while this waited for its terminal would be nobody's. */
	if (!stderr_is_ready())
		return;
	fprintf(stderr, "\r%s\033[K", text);
	w->drawn = true;
}

static void status_clear(struct waiting *w)
{
	if (w->drawn && !w->turn->abandoned && stderr_is_ready())
		fprintf(stderr, "\r\033[K");
	redlock_close(w->side);
}

/* --- the request --- */

static int64_t wait_until(const struct waiting *w)
{
	int64_t wait_ms = w->turn->in->wait_ms;

	return wait_ms < 0 ? INT64_MAX : w->began_us + (wait_ms + ANSWER_TIMEOUT_MS) * 1000;
}

/* Until something comes, something is due, or whoever asked is gone. */
static void wait_sleep(const struct waiting *w, int64_t until)
{
	struct redlock *c = w->turn->c;
	struct pollfd fds[] = {{.fd = redlock_fd(c), .events = redlock_events(c)}, {.fd = w->turn->front, .events = 0}};
	int64_t at = MIN(MIN(until, w->next_us), redlock_due_us(c)),
		left = at == INT64_MAX ? -1 : (at - redlock_now_us()) / 1000 + 1;

	if (at != INT64_MAX && left < 0)
		left = 0;
	if (poll(fds, 2, (int)MIN(left, 60000)) > 0)
		w->turn->abandoned = fds[1].revents != 0;
}

/* Once: who reads a log need not be told again. */
static void shortage_say(struct waiting *w)
{
	char shortage[SHORTAGE_BYTES] = "";

	w->next_us = redlock_now_us() + AGAIN_US;
	if (side_open(w) && !shortage_ask(w->side, shortage) && shortage[0] && stderr_is_ready()) {
		complain("waiting: %s", shortage);
		w->next_us = INT64_MAX;
	}
	side_close(w);
}

static void wait_tick(struct waiting *w)
{
	if (redlock_now_us() < w->next_us)
		return;
	if (!w->terminal) {
		shortage_say(w);
		return;
	}
	status_draw(w);
	w->next_us = redlock_now_us() + TICK_US;
}

/* The outcome of the LOCK that was sent; -ETIMEDOUT when the daemon has not even said TIMEOUT. */
static int answer_await(struct waiting *w)
{
	int64_t until = wait_until(w);
	int r;

	for (;;) {
		r = redlock_finish(w->turn->c, 0);
		if (r != -EAGAIN)
			return r;
		if (redlock_now_us() >= until)
			return -ETIMEDOUT;
		wait_sleep(w, until);
		if (w->turn->abandoned)
			return -ECANCELED;
		wait_tick(w);
	}
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
	const struct invocation *in = w->turn->in;
	char note[NOTE_BYTES + 1];
	struct redlock_options options = {.wait_ms = in->wait_ms, .ttl_ms = in->ttl_ms};

	note_make(in, note);
	if (note[0])
		options.note = note;
	return redlock_lock_send(w->turn->c, in->operand, &options);
}

/* TIMEOUT names no holder: SHOW does. */
static void not_acquired(const struct turn *t, int outcome)
{
	struct place place = {.session = redlock_session_id(t->c)};
	char name[LABEL_BYTES], age[AGE_BYTES];

	if (outcome == REDLOCK_BUSY || place_ask(t->c, t->in->operand, &place) || (!place.holder[0] && place.kept_ms < 0)) {
		complain("%s", redlock_errmsg(t->c));
		return;
	}
	shown_text(span_of(t->in->operand), name, sizeof(name));
	if (place.kept_ms >= 0)
		complain("%s is held by nobody, but kept for %s more", name, age_text(place.kept_ms, age));
	else if (place.held_ms < 0)
		complain("%s is held by %s", name, place.holder);
	else
		complain("%s is held by %s for %s", name, place.holder, age_text(place.held_ms, age));
}

static const char *trouble(const struct turn *t, int error)
{
	if (error != -ETIMEDOUT)
		return redlock_errmsg(t->c);
	return redlock_away(t->c) ? "redlockd went away and did not come back in time" : "redlockd does not answer";
}

bool turn_await(struct turn *t, int64_t *ret_ttl_ms)
{
	struct waiting w = {.turn = t, .began_us = redlock_now_us(), .terminal = isatty(STDERR_FILENO)};
	struct redlock_grant granted;
	int r = lock_send(&w);

	/* A crowd that began at one moment does not look at one moment. */
	w.next_us = w.began_us + TICK_US + (w.terminal ? 0 : getpid() % 1000 * (TICK_US / 1000));
	if (!r)
		r = answer_await(&w);
	status_clear(&w);
	if (!r) {
		*ret_ttl_ms = redlock_grant(t->c, &granted) ? 0 : granted.ttl_ms;
		return true;
	}
	t->exit = r == REDLOCK_BUSY || r == REDLOCK_TIMEOUT ? t->in->busy_exit : EXIT_FAILED;
	if (r == REDLOCK_BUSY || r == REDLOCK_TIMEOUT)
		not_acquired(t, r);
	else if (!t->abandoned)
		complain("%s", trouble(t, r));
	return false;
}

/* --- the session --- */

/* The label is what others see. */
static void label_make(const struct invocation *in, char out[LABEL_BYTES])
{
	const char *user = getenv("USER") ? getenv("USER") : getenv("LOGNAME"), *word = strrchr(in->argv[0], '/');

	snprintf(out, LABEL_BYTES, "redlock run %.80s%s%.40s", word ? word + 1 : in->argv[0], user ? "/" : "", user ? user : "");
}

static int greet(struct turn *t, int64_t grace_ms)
{
	char label[LABEL_BYTES];
	struct redlock_session session = {.label = label, .grace_ms = grace_ms};

	label_make(t->in, label);
	return redlock_hello(t->c, &session);
}

static bool greeted(struct turn *t, int r)
{
	if (!r)
		return true;
	t->exit = EXIT_FAILED;
	complain("%s", redlock_errmsg(t->c));
	return false;
}

/* What a daemon refuses it knows nothing of, or wants less of. */
static bool greet_any(struct turn *t)
{
	int r = greet(t, t->in->ttl_ms > 0 ? t->in->ttl_ms : TURN_GRACE_MS);

	return greeted(t, r == REDLOCK_REFUSED ? greet(t, 0) : r);
}

/* What the daemon will refuse is said before CMD runs, not after. */
static bool keep_is_allowed(struct turn *t)
{
	int64_t most = redlock_line_number(redlock_answer(t->c), "max_lease_ms", INT64_MAX);
	char asked[AGE_BYTES], allowed[AGE_BYTES];

	if (t->in->keep_ms <= most)
		return true;
	t->exit = EXIT_FAILED;
	complain("--keep %s is longer than the daemon's max_lease of %s", duration_text(t->in->keep_ms, asked), duration_text(most, allowed));
	return false;
}

bool turn_greet(struct turn *t)
{
	return greet_any(t) && keep_is_allowed(t);
}

bool turn_regreet(struct turn *t, int64_t grace_ms)
{
	int r = greet(t, grace_ms);

	return greeted(t, r == REDLOCK_REFUSED || r == -ECONNABORTED ? 0 : r);
}
