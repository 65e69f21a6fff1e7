/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays the journal of the previous run: its sessions are there again, without connections, and what they held is expected until the stores have confirmed
 * it. Records come in order; each is carried out on what those before it left. One that makes no sense ends the belief in all of them.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H

#include "daemon/core/commander.h"

/* 0; or -EBADMSG: the record makes no sense, and nothing of the journal is believed any more. */
int restore_record(struct commander *x, struct span record) __attribute__((warn_unused_result));
/* That was the last record. */
void restore_end(struct commander *x);

#endif
