/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client in a loop that has other work to do: it waits for x, which somebody else has, is told when it is granted, keeps it over a restart of the daemon,
 * gives it back, withdraws a wait for it, and hears that y is lost. It prints what happens; tests/clients/test_c.py plays the others.
 */
#include "tests/clients/loops/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS 10000
#define PATIENCE 5000
#define ENOUGH   3000 /* ticks */

static enum step { WAITS, CHECKS, RELEASES, AGAIN, WITHDRAWN, LOSES } step;
static struct redlock *c;
static unsigned ticks;
static bool was_away, asked;

static void said(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void must(const char *what, int r)
{
	if (!r)
		return;
	printf("%s: %d, %s\n", what, r, redlock_errmsg(c));
	exit(1);
}

static void ask(enum step next)
{
	static const struct redlock_options wait = {.size = sizeof(wait), .wait_ms = REDLOCK_FOREVER, .cancellable = true};

	step = next;
	asked = true;
	switch (step) {
	case WAITS:
	case AGAIN:
		must("LOCK", redlock_lock_send(c, "x", &wait));
		break;
	case CHECKS:
		must("CHECK", redlock_check_send(c, "x"));
		break;
	case RELEASES:
		must("UNLOCK", redlock_unlock_send(c, "x", NULL));
		break;
	case WITHDRAWN:
		must("CANCEL", redlock_cancel(c));
		break;
	case LOSES:
		must("LOCK", redlock_lock_send(c, "y", NULL));
		break;
	}
	loop_update();
}

static void answered(int r)
{
	struct redlock_grant grant;

	if (step == WITHDRAWN && r == REDLOCK_REFUSED && !strcmp(redlock_code(c), "CANCELLED")) {
		said("withdrawn");
		ask(LOSES);
		return;
	}
	must("an answer", r);
	if (step == WAITS) {
		must("a grant", redlock_grant(c, &grant));
		said("granted");
		step = CHECKS;
	} else if (step == CHECKS && was_away) {
		said("resumed");
		ask(RELEASES);
	} else if (step == RELEASES) {
		said("released");
		step = AGAIN;
	} else if (step == LOSES) {
		said("has y");
	}
}

/* Others take x as soon as they read that it is released: the second wait begins at a later tick, and so does its end. */
void scenario_tick(void)
{
	static unsigned since;

	was_away |= redlock_away(c);
	if (++ticks > ENOUGH)
		must("the end", -1);
	if (ticks == 5)
		said("ticks");
	if (step == CHECKS && !redlock_in_flight(c))
		ask(CHECKS);
	if (step != AGAIN)
		return;
	since++;
	if (since == 30)
		ask(AGAIN);
	if (since == 60)
		ask(WITHDRAWN);
}

void scenario_ready(void *arg, int r)
{
	const struct redlock_line *push;

	(void)arg;
	must("the connection", r);
	while ((push = redlock_next_push(c)))
		if (redlock_line_is(push, "LOST")) {
			said("lost");
			loop_end();
			return;
		}
	if (!asked || redlock_in_flight(c))
		return;
	asked = false;
	answered(redlock_finish(c, 0));
}

int main(int argc, char **argv)
{
	const struct redlock_session session = {.size = sizeof(session), .label = "loop", .grace_ms = GRACE_MS};

	if (argc != 2 || redlock_open(argv[1], PATIENCE, &c)) {
		fprintf(stderr, "%s\n", argc == 2 ? redlock_errmsg(NULL) : "address?");
		return 1;
	}
	must("HELLO", redlock_hello(c, &session));
	loop_begin(c);
	ask(WAITS);
	loop_run();
	redlock_close(c);
	return 0;
}
