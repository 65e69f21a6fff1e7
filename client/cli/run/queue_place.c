/* SPDX-License-Identifier: BSD-2-Clause */
/* See queue_place.h. */
#include "client/cli/run/queue_place.h"
#include "client/cli/io/field.h"
#include "client/lib/display.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t word_add(struct span word, char *out, size_t at, size_t size)
{
	if (!word.p || at + 10 >= size)
		return at;
	at = text_add(out, at, size, "%s", at ? " " : "");
	return at + shown_text(word, out + at, size - at);
}

/* The words that BUSY has for a holder: its session, as far as it is known, and "holder" if another daemon serves it. */
static void holder_show(const struct redlock_line *row, char *out, size_t size)
{
	struct span holder = field_of(row, "holder"), label = field_of(row, "name"), peer = field_of(row, "peer");
	int64_t pid = redlock_line_number(row, "pid", -1);
	size_t at;

	if (!holder.p && !label.p && !peer.p)
		holder = SPAN("somebody else");
	at = word_add(label, out, 0, size);
	if (pid >= 0)
		at = text_add(out, at, size, "%spid=%" PRId64 " uid=%" PRId64, at ? " " : "", pid, redlock_line_number(row, "uid", -1));
	else
		at = word_add(peer, out, at, size);
	(void)word_add(holder, out, at, size);
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
		return; /* of several readers the first has it longest */
	holder_show(row, place->holder, sizeof(place->holder));
	place->held_ms = redlock_line_number(row, "held_ms", -1);
}

int queue_place_ask(struct redlock *c, const char *name, struct queue_place *place)
{
	int r;

	place->holder[0] = '\0';
	place->position = 0;
	place->held_ms = place->kept_ms = place->ran_ms = -1;
	r = redlock_show(c, name, NULL, place_row, place);
	place->unknown = !r && field_of(redlock_answer(c), "known").p;
	return r;
}
