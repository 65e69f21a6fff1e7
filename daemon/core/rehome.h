/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues whose jobs are at another store than their home: the set of stores has changed since. Once this daemon uses queues, it looks at all stores when one
 * has joined, and moves what is due there, in the order of the queue: a job is leased where it is, deferred under its id at its home, and done where it was. A
 * crash in between leaves it at both, and so it may run twice, though not at once: see ALGORITHMS.md, Jobs. Its failed attempts count on. What is not due yet,
 * or leased, is moved when it is due. Jobs that have failed for good stay where they are: LIST jobs and RETRY find them there.
 */
#ifndef CORE_REHOME_H
#define CORE_REHOME_H

#include "daemon/core/jobs.h"

/* A queue is used: the stores are looked at before long, if one has joined since the last look. */
void rehome_note(struct commander *x);
/* A job that had failed for good is due again at a store that may not be its home. */
void rehome_look(struct commander *x);
void rehome_told(struct commander *x, struct home_question *q);
void rehome_fired(struct commander *x);
void rehome_free(struct commander *x);

#endif
