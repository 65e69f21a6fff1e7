/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of a session: questions about all of them, and what becomes of them with its connection, with its RESUME and with its end. */
#ifndef CORE_GROUPS_H
#define CORE_GROUPS_H

#include "daemon/core/session/group.h"

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

#endif
