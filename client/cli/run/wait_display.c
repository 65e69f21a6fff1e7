/* SPDX-License-Identifier: BSD-2-Clause */
/* See wait_display.h. */
#include "client/cli/run/wait_display.h"
#include "client/cli/io/output.h"
#include "client/lib/display.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

#define TICK_US  1000000
#define AGAIN_US 30000000 /* the interval without a terminal */
#define LONG_US  10000000 /* likewise: a wait this long is reported, once */
#define SIDE_MS  300      /* how long the status line waits for answers */

#define STATUS_BYTES 600

/* --- the holder, and the place in the queue, from SHOW --- */

/* Writes the same words about a holder as BUSY: its session, as far as it is known, and "holder" if another daemon serves it. */
static void holder_show(const struct redlock_line *row, char out[LABEL_BYTES])
{
	char label[LABEL_BYTES], peer[LABEL_BYTES], holder[LABEL_BYTES];
	const char *words[] = {label, peer, holder};
	int64_t pid = redlock_line_number(row, "pid", -1);
	size_t at = 0;

	field_show(row, "name", label, sizeof(label));
	field_show(row, "peer", peer, sizeof(peer));
	if (!field_show(row, "holder", holder, sizeof(holder)) && !label[0] && !peer[0])
		strcpy(holder, "somebody else");
	if (pid >= 0)
		snprintf(peer, sizeof(peer), "pid=%" PRId64 " uid=%" PRId64, pid, redlock_line_number(row, "uid", -1));
	for (size_t i = 0; i < 3; i++)
		if (words[i][0])
			at = text_add(out, at, LABEL_BYTES, "%s%s", at ? " " : "", words[i]);
}

static void place_row(void *arg, const struct redlock_line *row)
{
	struct queue_place *place = arg;
	bool holder = field_is(row, "role", "holder");

	if (field_is(row, "role", "waiter") && field_is(row, "session", place->session))
		place->position = redlock_line_number(row, "pos", 0);
	if (field_is(row, "role", "kept")) {
		place->kept_ms = redlock_line_number(row, "ttl_ms", -1);
		place->ran_ms = redlock_line_number(row, "kept_ms", -1);
	}
	if (!holder || place->holder[0])
		return; /* of several readers, the first has held it for longest */
	holder_show(row, place->holder);
	place->itself = place->outer_fence > 0 && redlock_line_number(row, "fence", 0) == place->outer_fence;
	place->held_ms = redlock_line_number(row, "held_ms", -1);
}

int queue_place_ask(struct redlock *c, const char *name, struct queue_place *place)
{
	int r;

	place->holder[0] = '\0';
	place->position = 0;
	place->itself = false;
	place->held_ms = place->kept_ms = place->ran_ms = -1;
	r = redlock_show(c, name, NULL, place_row, place);
	place->unknown = !r && field_of(redlock_answer(c), "known").p;
	return r;
}

/* An outer redlock has put its names and fencing tokens into the environment. If the token is not that of the holder, that redlock has ended. */
static int64_t outer_fence_of(const char *name)
{
	char key[32] = "REDLOCK_NAME", token[32] = "REDLOCK_FENCE";
	const char *outer, *fence;

	for (unsigned i = 2; (outer = getenv(key)); i++) {
		fence = getenv(token);
		if (fence && !strcmp(outer, name))
			return strtoll(fence, NULL, 10);
		snprintf(key, sizeof(key), "REDLOCK_NAME_%u", i);
		snprintf(token, sizeof(token), "REDLOCK_FENCE_%u", i);
	}
	return 0;
}

/* --- too few stores vote --- */

struct votes {
	unsigned nodes, joined, quarantined;
	int64_t left_ms; /* until the last quarantine ends */
	bool memory;     /* the store in the memory of the daemon */
};

static void votes_row(void *arg, const struct redlock_line *row)
{
	bool quarantined = field_is(row, "state", "quarantine");
	struct votes *v = arg;

	v->nodes++;
	v->memory |= field_is(row, "node", "memory");
	v->joined += field_is(row, "state", "joined");
	v->quarantined += quarantined;
	v->left_ms = MAX(v->left_ms, quarantined ? redlock_line_number(row, "left_ms", 0) : 0);
}

int quorum_shortage_ask(struct redlock *c, char out[QUORUM_SHORTAGE_BYTES])
{
	struct votes v = {0};
	int r = redlock_list(c, REDLOCK_NODES, NULL, votes_row, &v);
	const char *stores = v.memory ? "stores" : "Redis servers";
	unsigned quorum = v.nodes / 2 + 1, votes = v.joined + v.quarantined;
	char age[AGE_BYTES];

	out[0] = '\0';
	if (r || v.joined >= quorum)
		return r;
	if (votes < quorum)
		snprintf(out, QUORUM_SHORTAGE_BYTES, "too few %s answer: %u of %u, %u are needed", stores, votes, v.nodes, quorum);
	else
		snprintf(out, QUORUM_SHORTAGE_BYTES, "too few %s vote: %u of %u, %u are needed; %u may have forgotten locks and wait for up to %s", stores,
			 v.joined, v.nodes, quorum, v.quarantined, age_text(v.left_ms, age));
	return 0;
}

/* --- the text --- */

static const char *ordinal(int64_t n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* Shows as much as is known: whether the daemon is away, the place in the queue, the holder, how long the name is kept, and the shortage. */
static void status_text(const struct wait_display *s, const struct queue_place *place, const char *shortage, char *out, size_t size)
{
	int64_t seconds = (redlock_now_us() - s->began_us) / 1000000;
	const char *comma = place->position > 0 ? "," : " ";
	char name[SHOWN_BYTES], age[AGE_BYTES];
	size_t at = text_add(out, 0, size, "waiting for %s  %02d:%02d", shown(s->in->operand, name), (int)(seconds / 60), (int)(seconds % 60));

	if (redlock_away(s->c))
		at = text_add(out, at, size, "  redlockd is away");
	if (place->position > 0)
		at = text_add(out, at, size, "  %" PRId64 "%s in line", place->position, ordinal(place->position));
	if (place->holder[0])
		at = text_add(out, at, size, "%s held by %s", comma, place->holder);
	if (place->holder[0] && place->held_ms >= 0)
		at = text_add(out, at, size, " for %s", age_text(place->held_ms, age));
	if (place->itself)
		at = text_add(out, at, size, ", which runs this command: it waits for itself");
	if (place->kept_ms >= 0)
		at = text_add(out, at, size, "%s kept for %s", comma, age_text(place->kept_ms, age));
	if (shortage[0])
		(void)text_add(out, at, size, "%s %s", comma, shortage);
}

/* Cuts to the width of the terminal, if it is known, so that the line can be rewritten in place. */
static void text_cut(char *text)
{
	struct winsize size = {.ws_col = 0};
	size_t n = strlen(text);

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return;
	while (n && (shown_width((struct span){text, n}) >= size.ws_col || (text[n] & 0xc0) == 0x80))
		text[--n] = '\0';
}

/* --- the second connection --- */

static bool side_open(struct wait_display *s)
{
	if (!s->side && redlock_open(s->in->addr, SIDE_MS, &s->side))
		s->side = NULL;
	return s->side != NULL;
}

static void side_close(struct wait_display *s)
{
	redlock_close(s->side);
	s->side = NULL;
}

/* --- the line --- */

/* Asks the daemon, and writes the text. Returns whether the command waits for itself. */
static bool status_ask(struct wait_display *s, char *text, size_t size)
{
	struct queue_place place = {.session = redlock_session_id(s->c), .outer_fence = s->outer_fence, .held_ms = -1, .kept_ms = -1};
	char shortage[QUORUM_SHORTAGE_BYTES] = "";

	if (side_open(s) && (queue_place_ask(s->side, s->in->operand, &place) || (place.unknown && quorum_shortage_ask(s->side, shortage))))
		side_close(s);
	status_text(s, &place, shortage, text, size);
	return place.itself;
}

/* For a log: reports once that too few stores answer, and once what redlock waits for. */
static void log_tick(struct wait_display *s, int64_t now)
{
	int64_t long_us = s->began_us + LONG_US;
	char text[STATUS_BYTES] = "";
	bool late = now >= long_us;

	if (!s->short_shown && side_open(s) && !quorum_shortage_ask(s->side, text) && text[0] && stderr_is_ready()) {
		complain("waiting: %s", text);
		s->short_shown = true;
	}
	if (!s->long_shown && (late || s->outer_fence) && (status_ask(s, text, sizeof(text)) || late) && stderr_is_ready()) {
		complain("%s", text);
		s->long_shown = true;
	}
	side_close(s);
	s->due_us = now < long_us ? long_us : s->short_shown && s->long_shown ? INT64_MAX : now + AGAIN_US;
}

void wait_display_tick(struct wait_display *s)
{
	char text[STATUS_BYTES];

	if (redlock_now_us() < s->due_us)
		return;
	if (!s->terminal) {
		log_tick(s, redlock_now_us());
		return;
	}
	(void)status_ask(s, text, sizeof(text));
	text_cut(text);
	s->due_us = redlock_now_us() + TICK_US;
	/* Never wait for a terminal, because the lock may be granted meanwhile. */
	if (!stderr_is_ready())
		return;
	fprintf(stderr, "\r%s\033[K", text);
	s->drawn = true;
}

void wait_display_begin(struct wait_display *s, const struct invocation *in, const struct redlock *c)
{
	*s = (struct wait_display){.in = in, .c = c, .began_us = redlock_now_us(), .terminal = isatty(STDERR_FILENO)};
	s->outer_fence = in->shared || in->slots ? 0 : outer_fence_of(in->operand);
	/* Spreads the requests of processes that started at the same moment. */
	s->due_us = in->quiet ? INT64_MAX : s->began_us + TICK_US + (s->terminal ? 0 : getpid() % 1000 * (TICK_US / 1000));
}

void wait_display_end(struct wait_display *s, bool leave)
{
	if (s->drawn && !leave && stderr_is_ready())
		fprintf(stderr, "\r\033[K");
	redlock_close(s->side);
}
