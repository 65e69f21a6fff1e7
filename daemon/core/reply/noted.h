/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which names this daemon granted, and to whom, and the requests COMPLETE and RECENT, which ask that. A grant costs no more than its name appended to a list.
 * Once a second, or when somebody asks, the list becomes names. Nothing of this concerns any lock. See ALGORITHMS.md, Names.
 */
#ifndef CORE_NOTED_H
#define CORE_NOTED_H

#include "daemon/core/session/commander.h"

#define NOTES_EVERY_US SEC
#define NOTES_OF_USER  512    /* grants of one user that are noted in that time */
#define NOTES_MOST     1024   /* the same, of all users */
#define NAMES_KNOWN    100000 /* names that are remembered */
#define COMPLETE_LOOKS 2048   /* names that one COMPLETE goes through, to find some that its session may look at */

struct noted {
	struct timer timer;
	struct buf notes; /* those of this second */
	unsigned count;
	struct users users;
	struct roll known;
};

void noted_grant(struct commander *x, struct session *s, struct span name);

/* The session was granted a lock or a permit of this name. Inline, since each LOCK calls it: of more than there is room for it costs nothing. */
static inline void noted_add(struct commander *x, struct session *s, struct span name)
{
	if (!s->user || s->user->notes < NOTES_OF_USER)
		noted_grant(x, s, name);
}

void noted_fired(struct commander *x);
void noted_free(struct commander *x); /* no session is left */

void serve_COMPLETE(struct commander *x, struct session *s);
void serve_RECENT(struct commander *x, struct session *s);

#endif
