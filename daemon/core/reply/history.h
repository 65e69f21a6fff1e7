/* SPDX-License-Identifier: BSD-2-Clause */
/* Who held a name before, for SHOW; COMPLETE and RECENT: the names that were granted, and to whom. */
#ifndef CORE_HISTORY_H
#define CORE_HISTORY_H

#include "daemon/core/session/request_context.h"

/*
 * Who held a name before, for SHOW: the last holds that ended here, for how long they lasted, and how each ended. Only holds of FORMER_LEAST_US or longer
 * count, so a quick LOCK and UNLOCK pays one comparison. The daemon remembers the FORMER_NAMES names that were used last, until it ends.
 */

#define FORMER_LEAST_US (100 * MSEC)
#define FORMER_NAMES    1024
#define FORMER_HOLDS    4 /* of one name */

void former_note(struct request_context *x, const struct claim *c, const char *end);
/* Sends rows "role=former", the last hold first. Returns how many. */
unsigned former_rows(struct request_context *x, struct session *s, struct span tag, struct span name);
void formers_free(struct request_context *x);

/* The hold of the claim ends now. end: how it ends, a static word. */
static inline void former(struct request_context *x, const struct claim *c, const char *end)
{
	if (x->core->now.us - c->granted_at.us >= FORMER_LEAST_US)
		former_note(x, c, end);
}

/*
 * The names that this daemon granted, and to whom; and the requests COMPLETE and RECENT, which show them. A grant only appends its name to a list. Once a
 * second, or for a request, the list is sorted into names. Locks do not depend on this. See ALGORITHMS.md, Names.
 */

#define NOTES_EVERY_US SEC
#define NOTES_OF_USER  512    /* noted grants of one user in that time */
#define NOTES_MOST     1024   /* noted grants of all users in that time */
#define NAMES_KNOWN    100000 /* names that are remembered */
#define COMPLETE_LOOKS 2048   /* names that one COMPLETE looks at, to find some that its session may see; fewer if each costs many rules */

struct name_history {
	struct timer timer;
	struct buf notes; /* the notes of this second */
	unsigned count;
	struct users users;
	struct roll known;
};

void name_history_grant(struct request_context *x, struct session *s, struct span name);

/* The session was granted a lock or a permit of this name. Inline, because each LOCK calls it: a grant beyond the bound of its user costs nothing. */
static inline void name_history_add(struct request_context *x, struct session *s, struct span name)
{
	if (!s->user || s->user->notes < NOTES_OF_USER)
		name_history_grant(x, s, name);
}

void name_history_fired(struct request_context *x);
void name_history_free(struct request_context *x); /* call when no session is left */

void serve_COMPLETE(struct request_context *x, struct session *s);
void serve_RECENT(struct request_context *x, struct session *s);

#endif
