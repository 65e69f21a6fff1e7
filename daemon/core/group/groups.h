/* SPDX-License-Identifier: BSD-2-Clause */
/* The next step of a LOCKALL or LOCKANY; its answer, and what happens to it when its connection or session ends. */
#ifndef CORE_GROUPS_H
#define CORE_GROUPS_H

#include "daemon/core/session/group.h"

/* The groups of a session: questions about all of them, and what happens to them when its connection is lost, on RESUME, and at its end. */

/*
 * The session has got a name for which groups of the same owner may wait. They are looked at in the next step: only once, even if the session gets many names
 * in this step.
 */
void groups_gain(struct request_context *x, struct session *s);
void groups_again(struct request_context *x); /* looks at those sessions, some in each step */

/* Returns a group in which this owner waits for that name in the other mode; NULL: none. */
struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared);
/* Ends groups of that owner that ask for the name, were sent before the connection was lost, and were not repeated. False: there are none. */
bool groups_give_up(struct session *s, struct span name, struct span owner);

/* The session has lost its connection, and its groups go on without one. */
void groups_detach(struct request_context *x, struct session *s);
/* RESUME is answered: groups that the client does not ask for again by then will lapse. */
void groups_bound(struct request_context *x, struct session *s, struct instant until);

/* waiting: groups that are ending leave the queues. Else: they give back what they hold, and are freed. */
void groups_end(struct request_context *x, struct session *s, bool waiting);
void groups_free_all(struct request_context *x); /* those of all sessions: the daemon ends, and sends nothing */

/* How a group is answered: its client gets what it holds, or the group is refused. Then the group is freed. */

/* It has all names: sends a row for each, and OK. */
void group_win_all(struct request_context *x, struct group *g);
/* It has this name, which is enough. */
void group_win_one(struct request_context *x, struct group *g, struct part *p);
/* p: the name in the answer. */
void group_refuse(struct request_context *x, struct group *g, const struct part *p, enum refusal why);
/* It has no client that could be answered. */
void group_answered(struct request_context *x, struct group *g);

/* The next step of a group: it asks for names, gives them back, waits, insists, and is answered. See ALGORITHMS.md, Groups. */

/* Continues the first of the groups that are due. There must be one. Call this when no notice is left, and deliver notices afterwards. */
void group_step_next(struct request_context *x);
/* TIMER_INSISTING: it has kept its names for long enough. TIMER_LAPSE: the client has not repeated the request. */
void group_step_fired(struct request_context *x, struct timer *t);
/* The session has sent its last line: its groups no longer wait for any holder. A group that asks without waiting is still answered. */
void group_step_finish_up(struct request_context *x, struct session *s);

#endif
