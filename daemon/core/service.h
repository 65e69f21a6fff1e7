/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service: everything that redlockd decides, with no I/O. An event goes in, effects come out (event.h). It reads no clock, opens no socket and
 * draws its randomness from the seed of its configuration, so the same events give the same effects.
 *
 * Before an event is looked at, everything that is due at its time is done: leases that have ended are lost before any request or any
 * store's answer is heard. Not thread-safe; not re-entrant.
 */
#ifndef CORE_SERVICE_H
#define CORE_SERVICE_H

#include "daemon/core/core.h"

struct service;

/* conf and what it points to must outlive the service. */
struct service *service_new(const struct core_conf *conf);
void service_free(struct service *s);

/*
 * Effects are appended. 0; -EINVAL for an event about a session, node or call that does not exist, or one that comes at the wrong time; -EBADMSG for
 * an EVENT_RESTORE whose record cannot be read: what is missing may have been a hand-over, so nothing of the former life is believed any more, what
 * was restored before is forgotten, and what follows is refused likewise.
 */
int service_step(struct service *s, const struct event *event, struct effects *ret_effects);

/* EFFECT_JOURNAL records, and nothing else, that restore all that the journal must know now: for a new file in the place of a long one. Not within a step. */
void service_snapshot(struct service *s, struct effects *ret_effects);

/* When it must be stepped with EVENT_TIME at the latest; false: not before something else happens. */
bool service_deadline(const struct service *s, struct instant *ret_when);

/* Takes over what may change while running: lease, limits. */
void service_reload(struct service *s, const struct core_conf *conf);

/* "1/1 stores, 12 sessions, 3 locks": for the supervisor. Returns the length; cut at size. */
size_t service_status(const struct service *s, char *out, size_t size);
/* Every store has been looked at once: joined, quarantined, refused or found down. */
bool service_is_settled(const struct service *s);
/* "<16 hex>.<host>": random at each start; part of every value that this service leaves at a store. */
const char *service_daemon_id(const struct service *s);
const struct metrics *service_metrics(const struct service *s);

#endif
