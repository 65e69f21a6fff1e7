/* SPDX-License-Identifier: BSD-2-Clause */
/* What the answers that have rows share. A row is begun, filled and ended before anything else is sent. */
#ifndef CORE_ROWS_H
#define CORE_ROWS_H

#include "daemon/core/commander.h"

void row_begin(struct commander *x, struct span tag, struct reply *r);
void row_end(struct commander *x, struct session *s, struct reply *r);
/* OK n= more=; more < 0: left out. */
void rows_done(struct commander *x, struct session *s, struct span tag, uint64_t n, int64_t more);
/* One answer must not overflow the output of its session: these bytes of rows fill a quarter of it. */
bool rows_are_long(const struct commander *x, size_t bytes);

/* Fields: a session, one without a connection with since when, and for how much longer; a holder elsewhere, as the stores said last. */
void reply_session(const struct commander *x, struct reply *r, const struct session *s);
void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere);

#endif
