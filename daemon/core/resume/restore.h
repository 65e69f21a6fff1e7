/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays the journal of the previous run. Its sessions are there again, without connections, and what they held counts as held until the stores have
 * decided. Records come in order, and each builds on those before it. After a record that makes no sense none is believed.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H

#include "daemon/core/session/commander.h"

/* 0; or -EBADMSG: the record makes no sense, and nothing of the journal is believed any more. */
int restore_record(struct commander *x, struct span record) __attribute__((warn_unused_result));
/* That was the last record. */
void restore_end(struct commander *x);

#endif
