/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outstanding releases. From release_begin() on our value is dead, and so are the prior values that may stand in its place. Each store where one of them may
 * stand is told until it has confirmed, or the key has expired by itself.
 * See ALGORITHMS.md, Outstanding releases.
 */
#ifndef CORE_RELEASE_H
#define CORE_RELEASE_H

#include "daemon/core/round/engine_data.h"

/* RELEASE_LEAVE leaves the key for px_us. The pending, if any, is answered once a quorum has confirmed. */
void release_begin(struct engine *e, struct lease *x, enum release_kind kind, int64_t px_us, struct pending *p);
void release_again(struct engine *e, struct release *r, struct nodeset nodes, struct instant until); /* one of the process before this one */
struct instant release_until(const struct placed *p); /* no store has the value beyond */
void release_round(struct engine *e, struct round *r); /* deletes the value of a round that is not won, or won for nobody */
struct instant release_retry_at(struct engine *e); /* when to tell a store again that refused or was busy; each call returns a later moment */
bool release_waits(struct engine *e, struct release *r); /* for admission, from now on; false: it may begin now */
void release_admitted(struct engine *e, struct release *r); /* it waits no longer: whoever asks for its name may go on */
void release_waits_no_more(struct engine *e, struct release *r);
void release_go_on(struct engine *e, struct release *r); /* the release is admitted */
void release_answered(struct engine *e, struct release *r, const struct answer *a);
void release_fired(struct engine *e, struct release *r);
bool release_resume_some(struct engine *e); /* a store is back, or works again: tells it what it missed, once admitted. False: there is more */
bool release_waits_since(const struct engine *e, uint32_t count); /* some release was not looked at since that number of e->back.count */
void release_tell_put_off(struct engine *e, const struct name *name); /* sends the releases of this name that were put off, where there is room */
void release_hurry_all(struct engine *e); /* the daemon stops: sends to all stores that may be told, whatever the releases wait for */
/* The daemon stops: answers every UNLOCK sync=yes without waiting for the stores. Returns whether there was one. */
bool release_answer_syncs(struct engine *e);

#endif
