/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every answer tells about its store: that it lives, how long a round trip takes, what time it is there, how roughly that is known, that its marker
 * changed.
 */
#ifndef CORE_OBSERVE_H
#define CORE_OBSERVE_H

#include "daemon/core/member/members.h"

/* The answer to any call that was sent at `sent`. Asks stores anew where it raises a question. */
void member_observe(struct members *ms, const struct answer *a, struct instant sent);
/* The same, but jumps of clocks are left for members_settle_jumps. */
void member_hear(struct members *ms, const struct answer *a, struct instant sent);
/* Judges the clock jumps that are open. Probes the stores that must tell more, and those whose jump is decided: they are used again, or quarantined. */
void members_settle_jumps(struct members *ms);
/* A key is about to be set there. us: how roughly the clock is known, which bounds how late that may happen. */
void member_note_width(const struct members *ms, struct member *m, int64_t us);
/* The connection of m broke: commands that set a key may be carried out for a while yet. */
void member_note_overtaken(const struct members *ms, struct member *m);

#endif
