/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of TAKEs that went with their connection: after RESUME a TAKE of the same queue that is repeated in time has the place of the first that went.
 * Meanwhile the turn passes by such a place, since a job that nobody does must not be kept from the others.
 */
#ifndef CORE_TAKE_PLACES_H
#define CORE_TAKE_PLACES_H

#include "daemon/core/session/jobs.h"

/* The session loses its connection: the TAKE, which waits, is about to be withdrawn. */
void take_places_keep(struct request_context *x, const struct take *take);
/* RESUME: `to` has the places of `from`. */
void take_places_take_over(struct session *to, struct session *from);
void take_places_drop(struct session *s);
/* The time in which a TAKE may be repeated may be over. */
void take_places_lapse(const struct request_context *x, struct session *s);

/* Puts a TAKE among those that wait: one with wait= has the first place that was kept for it, if any; others stand last. */
void place_stand(struct request_context *x, struct take *take);

#endif
