/* SPDX-License-Identifier: BSD-2-Clause */
/* The permits of a session whose client comes back: what it hears of them by RESUME, and until when it may ask again for what it does not know of. */
#ifndef CORE_PERMIT_RESUME_H
#define CORE_PERMIT_RESUME_H

#include "daemon/core/semaphore/permits.h"

/* Its client hears of it: what the same owner lost before, with the slot that this one has, need not be remembered. */
void permit_forget_losses(struct request_context *x, struct permit *p);
/* From now on its client relies on it. Its turn came while the client was away, and would be over if it was not asked for again. */
void permit_hear(struct request_context *x, struct permit *p);
/* RESUME: `to` takes over what `from` has and waits for. */
void permits_take_over(struct session *to, struct session *from);
/* RESUME is answered, by rows from `begin` on: one for each permit, as far as there is room. Returns how many; *more counts the others. */
unsigned permits_tell_resumed(struct request_context *x, struct session *s, size_t begin, int64_t *more);
/* Behind that: what was lost meanwhile, and until when the client may ask again for what it does not know of. */
void permits_bound(struct request_context *x, struct session *s, struct instant until);
void permit_bound(struct request_context *x, struct permit *p, struct instant until); /* the latter for one of them; nothing if its client knows of it */

#endif
