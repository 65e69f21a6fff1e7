/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to a LOCKALL or LOCKANY, and what becomes of it when its connection or session ends. */
#ifndef CORE_GROUPS_H
#define CORE_GROUPS_H

#include "daemon/core/session/group.h"

/* The groups of a session: questions about all of them, and what becomes of them with its connection, with its RESUME and with its end. */

/*
 * The session has got a name, for which groups of the same owner may wait: they are looked at in the next step, all at once, however many names it gets in
 * this one.
 */
void groups_gain(struct request_context *x, struct session *s);
void groups_again(struct request_context *x); /* looks at those: some of them in a step */

struct group *group_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
/* By which this owner waits for that name in the other mode; NULL: there is none. */
struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared);
/* Those of that owner from before a cut, which were not repeated, and which ask for the name, are ending now. False: there are none. */
bool groups_give_up(struct session *s, struct span name, struct span owner);
bool groups_wait(const struct session *s, bool patient);
unsigned groups_patient(const struct session *s);

/* Its connection is lost, and they go on without. */
void groups_detach(struct request_context *x, struct session *s);
/* RESUME: `to` takes over what waits in `from`. */
void groups_take_over(struct session *to, struct session *from);
/* RESUME is answered: what is not asked for again by then lapses. */
void groups_bound(struct request_context *x, struct session *s, struct instant until);

/* Their parts get nothing any more. */
void groups_are_ending(struct session *s);
/* Then, waiting: those that are ending leave the queues; else they give back what they have, and are gone. */
void groups_end(struct request_context *x, struct session *s, bool waiting);
void groups_free_all(struct request_context *x); /* those of all sessions: the daemon ends, and tells nobody */

/* How a group is answered: what it has becomes its client's, or it is refused. The group is gone afterwards. */

/* It has all names: a row for each, and OK. */
void group_win_all(struct request_context *x, struct group *g);
/* It has this one, which is all that it wants. */
void group_win_one(struct request_context *x, struct group *g, struct part *p);
/* p: the name that the answer is about. */
void group_refuse(struct request_context *x, struct group *g, const struct part *p, enum refusal why);
/* It has no client that could be told. */
void group_answered(struct request_context *x, struct group *g);

/* What a group does next: it asks for names, gives them back, waits, insists, and is answered. See ALGORITHMS.md, Groups. */

/* Looks at the first of the groups that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void group_step_next(struct request_context *x);
/* TIMER_INSISTING: it has kept what it has for long enough. TIMER_LAPSE: the client has not repeated the request. */
void group_step_fired(struct request_context *x, struct timer *t);
/* The session has sent its last line: its groups wait for no holder any more. A group that asks without waiting is still answered. */
void group_step_finish_up(struct request_context *x, struct session *s);

#endif
