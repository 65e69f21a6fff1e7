/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service makes all decisions of redlockd, with no I/O. An event goes in, effects come out (event.h). It reads no clock, opens no socket and
 * draws its randomness from the seed of its configuration, so the same events give the same effects; but for the figures of the daemon around it, which an
 * answer to STATS tells as well (struct outer).
 *
 * Before an event is handled, everything that is due at its time is done: a lease that has ended is lost before a request or an answer
 * is handled. Not thread-safe; not re-entrant.
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
 * Handles an event and appends its effects. 0; -EINVAL for an event about an unknown session, node or call, or at the wrong time; -EBADMSG for
 * an EVENT_RESTORE whose record cannot be read. That record may have been a hand-over, so nothing of the previous run is trusted then: the service
 * forgets what was restored before, and refuses the records that follow.
 */
int service_step(struct service *s, const struct event *event, struct effects *ret_effects);

/*
 * A snapshot: all records that a new file of the journal needs, in portions, with steps between them. Appends one EFFECT_JOURNAL for each, and no other effect.
 * What the steps record from the first portion on belongs to the new file as well, in the order of time. False: that was the last portion. Not within a step.
 */
bool service_snapshot(struct service *s, struct effects *ret_effects);
void service_snapshot_drop(struct service *s); /* the next portion is the first one of another snapshot */

/*
 * A restart: the same for the next process, of all that the service has, see resume.h. The next service gets these records by EVENT_RESTORE. As long as
 * service_returns says so, no line may be read from a client.
 */
void service_hand_over(struct service *s, struct effects *ret_effects);
bool service_returns(const struct service *s);
/* While it returns: the process before had other stores, so what was held there is lost. */
bool service_has_other_stores(const struct service *s);
/* Whether a client waits for what the stores are about to answer, and what cannot be asked again by the next process. */
bool service_is_awaited(const struct service *s);

/* True: the service must be stepped by *ret_when, with EVENT_TIME if there is no other event. False: nothing is due. */
bool service_deadline(const struct service *s, struct instant *ret_when);

/* Applies those values of conf that may change at run time, and no others. */
void service_reload(struct service *s, const struct core_conf *conf);

/* "1/1 stores, 12 sessions, 3 locks, 2 waiters, draining": for the supervisor. Returns the length; cut at size. */
size_t service_status(const struct service *s, char *out, size_t size);
/* Whether the daemon grants nothing new, because it drains or stops. */
bool service_is_draining(const struct service *s);
/* Whether the rules let a peer without a session look at what concerns no name; some: at anything at all. */
bool service_lets_look(const struct service *s, const struct peer *peer, bool some);
/* Whether a drain is over: it is time for EVENT_STOP. To be asked again and again, as no event tells it. */
bool service_is_drained(struct service *s);
/* Whether requests that new rules deny may wait still, and get their turn: the next steps refuse them, see admin.h. */
bool service_is_judging(const struct service *s);
/* Votes fell, and some leases have not their new timers yet: steps that follow at once set them. */
bool service_sets_timers(const struct service *s);
/* Whether each store was examined once: joined, quarantined, refused or down. */
bool service_is_settled(const struct service *s);
/* "<16 hex>.<host>": random at each start; part of every value that this service leaves at a store. */
const char *service_daemon_id(const struct service *s);
const struct metrics *service_metrics(struct service *s);
/* All figures one by one, as STATS tells them. */
void service_tally(const struct service *s, const struct sampler *to);

/* What people ask of a store: as LIST nodes tells it. The texts are valid until the next step. */
struct service_store {
	const char *name, *state;
	const char *cause; /* why it does not serve, or not well, as a word of proto/defect.def; NULL: it does, or waits */
	bool usable;     /* its votes count, and it answers in time */
	int64_t rtt_us;  /* smoothed; 0: not known */
	const struct histogram *trips;
	int64_t trips_us; /* their sum */
	const char *address, *run_id; /* those that sentinels named, and of the server there; "": not known, or too long */
	struct instant heard;         /* when it answered last; 0: it has not yet */
};
void service_store(const struct service *s, unsigned node, struct service_store *ret_store);
/* Whether so many stores are joined that locks can be granted. */
bool service_has_quorum(const struct service *s);

#endif
