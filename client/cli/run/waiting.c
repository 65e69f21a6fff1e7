/* SPDX-License-Identifier: BSD-2-Clause */
/* See waiting.h. */
#include "client/cli/run/waiting.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/wait_display.h"
#include "client/lib/boottime.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define NOTE_BYTES   256 /* the longest note that a daemon accepts */
#define POLL_MOST_MS 60000
#define TEXT_MOST    (PAYLOAD_MAX - 1) /* bytes of a deferred command line, without the LF after it */

/* --- the session --- */

/* Makes the label that others see for the session. */
static void label_make(const struct invocation *in, char out[LABEL_BYTES])
{
	const char *user = getenv("USER") ? getenv("USER") : getenv("LOGNAME"), *word = strrchr(in->argv[0], '/');
	const char *verb = command_id(in) == CLI_TRY ? "run" : in->command->word;

	snprintf(out, LABEL_BYTES, "redlock %s %.80s%s%.40s", verb, word ? word + 1 : in->argv[0], user ? "/" : "", user ? user : "");
}

static int greet(struct waiting *w, int64_t grace_ms)
{
	char label[LABEL_BYTES];
	struct redlock_session session = {.size = sizeof(session), .label = label, .grace_ms = grace_ms};

	label_make(w->in, label);
	return redlock_hello(w->c, &session);
}

static bool greeted(struct waiting *w, int r)
{
	if (!r)
		return true;
	w->exit = EXIT_FAILED;
	complain("%s%s", redlock_errmsg(w->c), silence_hint(r));
	return false;
}

bool waiting_greet(struct waiting *w)
{
	char asked[AGE_BYTES], allowed[AGE_BYTES];
	int r = greet(w, w->in->ttl_ms > 0 ? w->in->ttl_ms : GRACE_MS);
	int64_t most;

	/* If the daemon refuses this grace, ask for the most that it allows, or for none. */
	if (r == REDLOCK_REFUSED) {
		r = greet(w, 0);
		most = r ? 0 : redlock_line_number(redlock_answer(w->c), "max_grace_ms", 0);
		if (most > 0 && (r = greet(w, most)) == REDLOCK_REFUSED)
			r = greet(w, 0);
	}
	if (!greeted(w, r))
		return false;
	/* The daemon refuses a longer keep. Report it before CMD runs, not after. An earlier daemon limits it by max_lease. */
	most = redlock_line_number(redlock_answer(w->c), "max_lease_ms", INT64_MAX);
	most = redlock_line_number(redlock_answer(w->c), "max_keep_ms", most);
	if (w->in->keep_ms <= most)
		return true;
	w->exit = EXIT_FAILED;
	duration_format(w->in->keep_ms * US_PER_MS, asked);
	duration_format(most * US_PER_MS, allowed);
	complain("--keep %s is longer than the daemon's max_keep of %s", asked, allowed);
	return false;
}

bool waiting_regreet(struct waiting *w, int64_t grace_ms)
{
	int r = greet(w, grace_ms);

	return greeted(w, r == REDLOCK_REFUSED || r == -ECONNABORTED ? 0 : r);
}

/* --- the request --- */

/* Writes the given note, or else the command line. Cuts it between characters. */
static void note_make(const struct invocation *in, char out[NOTE_BYTES + 2])
{
	size_t at = text_add(out, 0, NOTE_BYTES + 2, "%s", in->note ? in->note : ""), n = NOTE_BYTES;

	for (size_t i = 0; !in->note && in->argv[i]; i++)
		at = text_add(out, at, NOTE_BYTES + 2, "%s%s", i ? " " : "", in->argv[i]);
	while (at > NOTE_BYTES && n > NOTE_BYTES - 3 && (out[n] & 0xc0) == 0x80)
		n--;
	out[n] = '\0';
}

static int lock_send(const struct waiting *w)
{
	const struct invocation *in = w->in;
	char note[NOTE_BYTES + 2] = "";
	struct redlock_options options = {.size = sizeof(options), .wait_ms = in->wait_ms, .ttl_ms = in->ttl_ms, .priority = in->priority, .shared = in->shared,
	                                  .slots = in->slots, .trace = in->trace};

	note_make(in, note);
	if (note[0])
		options.note = note;
	if (in->names_n > 1)
		return redlock_lock_many_send(w->c, in->any, in->names, in->names_n, &options);
	return redlock_lock_send(w->c, in->operand, &options);
}

void waiting_sleep(struct waiting *w, int64_t until)
{
	struct pollfd fds[] = {{.fd = redlock_fd(w->c), .events = redlock_events(w->c)}, {.fd = w->front, .events = 0}, {.fd = w->signals, .events = POLLIN}};
	int64_t at = MIN(until, redlock_due_us(w->c)), left = at == INT64_MAX ? -1 : MAX(0, (at - redlock_now_us()) / 1000 + 1);

	if (poll(fds, 3, (int)MIN(left, POLL_MOST_MS)) > 0)
		w->abandoned = fds[1].revents || fds[2].revents;
}

int waiting_answer(struct waiting *w, int64_t until, struct wait_display *status)
{
	int64_t most = until == INT64_MAX ? INT64_MAX : until + ANSWER_TIMEOUT_MS * INT64_C(1000);
	int r;

	while ((r = redlock_finish(w->c, 0)) == -EAGAIN) {
		if (redlock_now_us() >= most)
			return -ETIMEDOUT;
		waiting_sleep(w, status ? MIN(most, status->due_us) : most);
		if (w->abandoned)
			return -ECANCELED;
		if (status)
			wait_display_tick(status);
	}
	return r;
}

/* --- no grant --- */

/* Quotes the words for a shell. Returns the length. More than TEXT_MOST: they are too long, and were cut. */
static size_t line_for_shell(char *const *words, char out[PAYLOAD_MAX + 1])
{
	size_t at = 0;

	for (; *words; words++) {
		at = text_add(out, at, PAYLOAD_MAX + 1, at ? " '" : "'");
		for (const char *p = *words; *p; p++)
			at = *p == '\'' ? text_add(out, at, PAYLOAD_MAX + 1, "'\\''") : text_add(out, at, PAYLOAD_MAX + 1, "%c", *p);
		at = text_add(out, at, PAYLOAD_MAX + 1, "'");
	}
	return at;
}

bool or_defer(const struct invocation *in, struct redlock *c)
{
	const struct redlock_deferral options = {.size = sizeof(options), .lock = in->operand};
	char text[PAYLOAD_MAX + 1], id[REDLOCK_JOB_BYTES], name[SHOWN_BYTES];
	size_t n = line_for_shell(in->argv, text);
	int r;

	if (n > TEXT_MOST) {
		complain("the command line is too long to be deferred: %d bytes at most", TEXT_MOST);
		return false;
	}
	text[n++] = '\n';
	r = redlock_defer(c, in->defer_to, (struct redlock_bytes){text, n}, &options, id);
	if (r)
		complain("%s%s", redlock_errmsg(c), silence_hint(r));
	else if (!in->quiet)
		complain("deferred: job %s of %s", id, shown(in->defer_to, name));
	return !r;
}

/* Reports who holds the lock. Sends SHOW if the answer does not say enough: BUSY names a holder of this host, but only the host of one elsewhere. */
static void holder_complain(const struct waiting *w, int outcome)
{
	struct queue_place place = {.session = redlock_session_id(w->c)};
	struct span holder = field_of(redlock_answer(w->c), "holder");
	bool known = outcome == REDLOCK_BUSY && (holder.n == 0 || holder.p[0] != '@');
	char name[SHOWN_BYTES], age[AGE_BYTES], more[AGE_BYTES];

	if (known || w->in->names_n > 1 || queue_place_ask(w->c, w->in->operand, &place) || (!place.holder[0] && place.kept_ms < 0)) {
		complain("%s", redlock_errmsg(w->c));
		return;
	}
	shown(w->in->operand, name);
	if (place.kept_ms >= 0 && place.ran_ms >= 0)
		complain("%s is kept for %s more since it ran %s ago", name, age_text(place.kept_ms, more), age_text(place.ran_ms, age));
	else if (place.kept_ms >= 0)
		complain("%s is held by nobody, but kept for %s more", name, age_text(place.kept_ms, age));
	else
		complain("%s is held by %s%s%s", name, place.holder, place.held_ms < 0 ? "" : " for ", place.held_ms < 0 ? "" : age_text(place.held_ms, age));
}

static bool not_granted(struct waiting *w, int outcome)
{
	bool taken = outcome == REDLOCK_BUSY || outcome == REDLOCK_TIMEOUT;
	const char *silent = redlock_away(w->c) ? "redlockd went away and did not come back in time" : "redlockd does not answer";

	w->exit = taken ? w->in->busy_exit : EXIT_FAILED;
	if (taken && !w->in->quiet)
		holder_complain(w, outcome);
	if (taken && w->in->defer_to)
		w->exit = or_defer(w->in, w->c) ? EXIT_SUCCESS : EXIT_FAILED;
	if (!taken && !w->abandoned)
		complain("%s%s", outcome == -ETIMEDOUT ? silent : redlock_errmsg(w->c), silence_hint(outcome));
	return false;
}

bool waiting_take(struct waiting *w, int64_t *ret_ttl_ms, unsigned *ret_name)
{
	struct redlock_grant granted;
	struct wait_display status;
	int64_t until;
	int r;

	wait_display_begin(&status, w->in, w->c);
	until = w->in->wait_ms < 0 ? INT64_MAX : status.began_us + w->in->wait_ms * 1000;
	r = lock_send(w);
	if (!r)
		r = waiting_answer(w, until, &status);
	wait_display_end(&status, w->abandoned);
	if (r)
		return not_granted(w, r);
	*ret_name = 0;
	while (w->in->any && *ret_name < w->in->names_n - 1 && !field_is(redlock_answer(w->c), "name", w->in->names[*ret_name]))
		++*ret_name;
	*ret_ttl_ms = redlock_grant(w->c, &granted) ? 0 : granted.ttl_ms;
	if (w->in->names_n > 1 && !w->in->any)
		*ret_ttl_ms = redlock_many_ttl_ms(w->c);
	return true;
}
