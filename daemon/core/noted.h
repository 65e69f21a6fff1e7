/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which names were locked, and by whom: for COMPLETE and RECENT. A grant costs no more than its name appended to a list. The list is looked at once a second,
 * or when somebody asks: then the names join those known here, those of their users, and, if others share the stores, one call tells each store of what is new.
 * A name goes to a store once an hour at most. Nothing of this concerns any lock: what fails is left out.
 * See ALGORITHMS.md, Names.
 */
#ifndef CORE_NOTED_H
#define CORE_NOTED_H

#include "daemon/core/commander.h"

#define NOTES_EVERY_US SEC
#define NOTES_OF_USER  1024         /* grants of one user that are noted in that time */
#define NOTES_MOST     8192         /* the same, of all users */
#define NOTES_TOLD     256          /* names in one call, and as many of users */
#define NOTES_BYTES    65536        /* of one call */
#define NOTES_AGAIN_US (3600 * SEC) /* after that a store is told again of a name */
#define NAMES_STORED   100000       /* names that a store keeps */
#define NAMES_HERE     4096         /* names known here that are at the stores as well */
#define NAMES_LIFE_US  (30 * 24 * NOTES_AGAIN_US)

struct note {
	struct user *user;
	size_t n; /* bytes of the name, which follow */
};

struct noted {
	struct timer timer;
	struct buf notes; /* those of this second */
	unsigned count;
	struct users users;
	struct roll known; /* a name is due when the stores are to be told; stamp: until when they need not be told again */
	struct name name;  /* of the call: it is about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	int64_t telling;   /* the stamp of the names in the call under way, or in the last one */
	bool told;         /* a store has carried it out */
};

/* Whose grants the session gets, from now on. */
struct user *noted_user(struct commander *x, struct session *s);
struct noted *noted_here(struct commander *x); /* made if need be */

void noted_grant(struct commander *x, struct session *s, struct span name);

/* The session was granted a lock or a permit of this name. Inline, since each LOCK calls it: of more than there is room for it costs nothing. */
static inline void noted_add(struct commander *x, struct session *s, struct span name)
{
	if (!s->user || s->user->notes < NOTES_OF_USER)
		noted_grant(x, s, name);
}

/* Looks at the notes now. There is a struct noted. */
void noted_look(struct commander *x);
void noted_fired(struct commander *x);
/* A store has answered a call of noted.calls. The engine has tracked it already. */
void noted_answered(struct commander *x, const struct answer *a);
/* In order: calls and timers; the rest, when no session is left. */
void noted_close(struct commander *x);
void noted_free(struct commander *x);

/* Asks a store. What is asked must stay valid until the effects are carried out. */
void noted_ask(struct commander *x, struct calls *c, unsigned node, struct span asked);
/* One item of a call: see lua/names.lua. kind 'n': the user is "". */
void noted_put(struct buf *out, char kind, struct span user, struct span name);

#endif
