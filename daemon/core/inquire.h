/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the daemon of a holder elsewhere who that is, by one message that a store publishes, and answers such questions of others. A request that this concerns
 * is held back until the answer comes, for a short time at most. A message may be lost: then the line says less.
 */
#ifndef CORE_INQUIRE_H
#define CORE_INQUIRE_H

#include "daemon/core/strangers.h"

#define INQUIRE_AGAIN_US SEC          /* the same question comes no sooner */
#define INQUIRE_OTHER_US (200 * MSEC) /* nor does one about another holder of the name */
#define QUESTIONS_MOST   128          /* in a second … */
#define ANSWERS_MOST     256          /* … and answers, of this daemon */
#define WORDS_MOST       64           /* messages that no store has confirmed yet */
#define HELD_BACK_MOST   1024         /* requests that are held back */
#define HELD_BACK_US     (10 * MSEC)  /* a refusal is, beside four round trips … */
#define SHOW_MOST_US     (250 * MSEC) /* … and a SHOW, but neither for longer than a call may take */

/* Asks about the holder of that name, if it is time to. */
void inquire(struct commander *x, struct span name, const struct elsewhere *elsewhere);
/*
 * The same about pending->elsewhere. True: a copy of the pending is held back; it is among those of its session. False: what is known by now is all that will
 * be. A refusal is held back for less time than a SHOW, and not at all if something is known that may be outdated.
 */
bool inquire_holds_back(struct commander *x, const struct pending *p, bool refusal);

/* Messages of other daemons: EVENT_ASKED, EVENT_TOLD. */
void inquire_asked(struct commander *x, unsigned node, struct span message);
void inquire_told(struct commander *x, struct span message);
/* Looks whether this is the answer to a call that published a message. The engine has tracked it already. */
void inquire_answered(struct commander *x, const struct answer *a);
void inquire_fired(struct commander *x);
/* The next request that is held back no longer; NULL: none. The caller tells it, and frees it. */
struct pending *inquire_next_due(struct commander *x);
void inquire_free_pending(struct commander *x, struct pending *p);
void inquire_free(struct commander *x);

#endif
