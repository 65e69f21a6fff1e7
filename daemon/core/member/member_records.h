/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon has seen of its stores, for the process that goes on in a restart: the signs by which it finds that a store has lost memory, and how long each
 * quarantine has lasted. See STORES to QUARANTINE in journal.h. A daemon that has crashed begins without.
 *
 * The next process verifies each marker itself, so it is not told in which state a store was. Nor is it told what answers soon show again: round trips,
 * troubles, the windows of calls, and which earlier set a store was taken over from.
 */
#ifndef CORE_MEMBER_RECORDS_H
#define CORE_MEMBER_RECORDS_H

#include "daemon/core/event/journal.h"
#include "daemon/core/member/members.h"

#define MEMBER_RECORDS_MOST 6

/* What is about all stores. The texts are valid while nothing changes here. */
struct journal_record members_record(struct members *ms);
/* What is about one: so many records of the array. */
unsigned member_records(const struct members *ms, unsigned node, struct journal_record ret_record[MEMBER_RECORDS_MOST]);

/* Back, before any store is connected. True: of the same configuration, so the records of each store count. */
bool members_restore(struct members *ms, const struct journal_record *r);
/* False: the record makes no sense. One of a store that is not ours is passed over. */
bool member_restore(struct members *ms, const struct journal_record *r);

#endif
