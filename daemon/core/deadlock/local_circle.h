/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A circle of locks at this daemon, before a request closes it. An owner that waits for a lock waits for all that hold it, and a LOCKALL for each of its names:
 * so a walk from holder to holder that comes back to the owner is a deadlock for certain. LOCKANY and permits, where one of several is enough, circles over
 * daemons, and those that are too large to be walked, are found later: see deadlock.h.
 */
#ifndef CORE_LOCAL_CIRCLE_H
#define CORE_LOCAL_CIRCLE_H

#include "daemon/core/session/request_context.h"

#define CIRCLE_MAX 2000 /* bytes of its text: quoted at its worst it still fits into a reply */

/*
 * The owner of the present request is about to wait for these names. True: it would wait for itself, and ERR DEADLOCK was sent, with the names along the
 * circle: "a<-b<-a". It waits for the first one, whose holder waits for the next one, and so on; names that its user may not know are dots.
 */
bool local_circle_is_refused(struct request_context *x, struct session *s, const struct span *names, unsigned n);

#endif
