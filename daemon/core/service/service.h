/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service makes all decisions of redlockd, and does no I/O. It takes events and returns effects (event.h). It reads no clock and opens no socket. Its
 * random numbers come from the seed in its configuration, so the same events give the same effects. The only exception are figures of the outer layer in the
 * answer to STATS (struct outer).
 *
 * Before an event is handled, everything that is due at its time is done. For example, a lease that has ended is lost before a request or an answer is handled.
 * Not thread-safe; not re-entrant.
 */
#ifndef CORE_SERVICE_H
#define CORE_SERVICE_H

#include "daemon/core/event/core.h"
#include "daemon/core/event/metric.h"

struct service;

/* conf and what it points to must outlive the service. */
struct service *service_new(const struct core_conf *conf);
void service_free(struct service *s);

/*
 * Handles an event and appends its effects. Returns 0; -EINVAL for an event about an unknown session, node or call, or at the wrong time; -EBADMSG for an
 * EVENT_RESTORE whose record cannot be read. That record may have been a hand-over, so nothing of the previous run is trusted then: the service forgets what
 * was restored before, and refuses further records.
 */
int service_step(struct service *s, const struct event *event, struct effects *ret_effects);

/*
 * A snapshot: all records for a new file of the journal, in portions, with steps in between. Appends one EFFECT_JOURNAL for each record, and no other effect.
 * What steps record after the first portion began also belongs to the new file, in the order of time. False: that was the last portion. Do not call this within
 * a step.
 */
bool service_snapshot(struct service *s, struct effects *ret_effects);
void service_snapshot_drop(struct service *s); /* the next portion is the first of another snapshot */

/*
 * A restart: writes such records of all that the service has, for the next process, see resume.h. The next service gets them by EVENT_RESTORE. While
 * service_returns is true, no line may be read from a client.
 */
void service_hand_over(struct service *s, struct effects *ret_effects);
bool service_returns(const struct service *s);
/* While service_returns is true: the previous process had other stores, so what was held there is lost. */
bool service_has_other_stores(const struct service *s);
/* Whether a client waits for an answer of the stores that comes soon, and that the next process could not ask for again. */
bool service_is_awaited(const struct service *s);

/* True: the service must be stepped by *ret_when, with EVENT_TIME if there is no other event. False: nothing is due. */
bool service_deadline(const struct service *s, struct instant *ret_when);

/* Applies the values of conf that may change at run time, and no others. */
void service_reload(struct service *s, const struct core_conf *conf);

/* "1/1 stores, 12 sessions, 3 locks, 2 waiters, draining": for the supervisor. Cut at size. Returns the length. */
size_t service_status(const struct service *s, char *out, size_t size);
/* Whether the daemon grants nothing new, because it drains or stops. */
bool service_is_draining(const struct service *s);
/* Whether the rules let a peer without a session look at what has no name. some: whether it may look at anything at all. */
bool service_lets_look(const struct service *s, const struct peer *peer, bool some);
/* Whether a drain is over, and EVENT_STOP may follow. Call it repeatedly: there is no event for this. */
bool service_is_drained(struct service *s);
/* Whether requests that new rules deny may still wait, and be granted. The next steps refuse them, see admin.h. */
bool service_is_judging(const struct service *s);
/* Votes fell, and some leases do not have their new timers yet. Steps that follow at once set them. */
bool service_sets_timers(const struct service *s);
/* Whether each store was checked once: it is joined, quarantined, refused or down. */
bool service_stores_checked(const struct service *s);
/* "<16 hex>.<host>", random at each start. It is part of each value that this service writes to a store. */
const char *service_daemon_id(const struct service *s);
const struct metrics *service_metrics(struct service *s);
/* Passes on all figures one by one, as STATS shows them. */
void service_tally(const struct service *s, const struct sampler *to);

/* What LIST nodes shows about a store. The texts are valid until the next step. */
struct service_store {
	const char *name, *state;
	const char *cause; /* why it does not serve, or not well, as a word of proto/defect.def; NULL: it serves, or waits */
	bool usable;     /* its votes count, and it answers in time */
	int64_t rtt_us;  /* smoothed; 0: not known */
	const struct histogram *trips;
	int64_t trips_us; /* their sum */
	const char *address, *run_id; /* as named by sentinels, and as reported by the server there; "": not known, or too long */
	struct instant answered_at;   /* when it last answered; 0: never */
};
void service_store(const struct service *s, unsigned node, struct service_store *ret_store);
/* Whether enough stores are joined to grant locks. */
bool service_has_quorum(const struct service *s);

#endif
