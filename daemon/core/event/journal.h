/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the journal, as bytes: what the next run of the daemon needs to let clients resume. See ALGORITHMS.md, Adoption. One record is one
 * EFFECT_JOURNAL, and comes back as one EVENT_RESTORE. Only sessions with grace have records.
 *
 *   SESSION  a session begins, or changes its label, grace or heartbeat
 *   OVER     the session has ended; nothing that it held or lost is remembered
 *   HELD     the session holds the lock with these values from now on: after a grant, a hand-over, a change of the count, an EXTEND, an adoption. It
 *            supersedes every earlier record of the name, so only the session of the last record can adopt the value; but a shared hold supersedes no
 *            other shared hold of the same lease. A longer lease is recorded
 *            before the stores are asked for it, because they may grant it although EXTEND was answered ERR. The records of one LOCKALL follow each
 *            other, all but the last with JOURNAL_MORE: if the file ends between them, all of them are void
 *   ADOPTING as HELD, written by earlier versions alone: they gave each lease a new value when they adopted it, and named the values that it replaced
 *   FREED    (session, owner) no longer holds the name, and no loss of it is remembered
 *   LOST     (session, owner) has lost the name: the loss is remembered, the value can no longer be adopted
 *   STAYS, KEPT  written by earlier versions alone, behind HELD or ADOPTING of a reader: an end or a lock-delay of its own. They are passed over
 *   JOB      the session has the job, by a lease of this value. It supersedes every earlier record of this job and session
 *   JOB_LOST it has lost it: the loss is remembered, and keeps the lock. It supersedes as JOB does
 *   JOB_OVER it no longer has it, and no loss of it is remembered
 *   JOB_KNOWN behind JOB: its client has said something about the job, so it has read the answer to its TAKE
 *   JOB_ENDING behind JOB: the home is asked to end the job so. The session does not have it any more; the next run asks for the same until the moment named
 *   DAEMON   the id of the daemon, which its values begin with, and how many runs with it were before this one. The next run goes on with that id
 *
 * A snapshot is written while the daemon goes on. It tells one session after the other, each with all that it has at that moment, and between them whatever is
 * recorded meanwhile. So what is recorded of a session before it was told is superseded when it is, and passed over if no SESSION stands before it.
 *
 * A record is: version (1 byte), kind (1 byte), then its fields: number (1 byte), length (2 bytes), and so many bytes. A number has as few bytes as it takes,
 * all little-endian. A field that is 0 or empty is left out. The reader passes over fields and kinds that it does not know, which a later version has written;
 * a field that is missing is 0 or empty. So a later version may add a field whose absence means what it meant before, and a kind that an earlier one may pass
 * over; it never gives a number another meaning. The reader refuses a field beyond its bounds, and one that the record ends within.
 * Version 1 had the parts 1 to 27 of a kind in their order, without numbers: a number as 8 bytes, a text as 2 bytes of length and its bytes. It is read, and
 * not written any more. Records have no checksum; the file frames and checks them. Pure: no files, no clocks, no allocation.
 */
#ifndef CORE_JOURNAL_H
#define CORE_JOURNAL_H

#include "daemon/base/instant.h"
#include "proto/proto.h"

#define JOURNAL_VERSION    2
#define JOURNAL_RECORD_MAX 2048 /* most bytes of one record */

#define JOURNAL_NAME_MAX   528  /* that of a slot is longer than any that a client names */

#define JOURNAL_RUN_MOST   (1 << 23)

#define JOURNAL_RENEWED    1    /* kept by the watchdog */
#define JOURNAL_SHARED     2    /* held by a reader, be it with others */
#define JOURNAL_MORE       4    /* of a LOCKALL: the next record is of the same; it is void without that */
#define JOURNAL_PERMIT     8    /* of a permit: see recall.h */

enum journal_kind { JOURNAL_SESSION = 1, JOURNAL_OVER, JOURNAL_HELD, JOURNAL_FREED, JOURNAL_LOST, JOURNAL_ADOPTING, JOURNAL_JOB, JOURNAL_JOB_OVER,
	JOURNAL_STAYS, JOURNAL_KEPT, JOURNAL_JOB_LOST, JOURNAL_JOB_KNOWN, JOURNAL_DAEMON, JOURNAL_JOB_ENDING };
#define JOURNAL_KIND_LAST JOURNAL_JOB_ENDING

/* How the owner of LOST begins, and of the FREED behind it, if they are about a permit: see recall.h. */
#define JOURNAL_LOSS_OWNER "\001lost "

/*
 * NUMBER(number, id, member, least, most, what it is), TEXT(number, id, member, least bytes, most bytes, what it is).
 * Moments are microseconds of CLOCK_BOOTTIME, durations microseconds.
 */
#define JOURNAL_PARTS(NUMBER, TEXT) \
	NUMBER(1, SESSION, session, 1, INT64_MAX, "the number of RESUME, and of people") \
	TEXT(2, SECRET, secret, 32, 32, "the secret of RESUME") \
	TEXT(3, LABEL, label, 0, 256, "HELLO name=") \
	NUMBER(4, GRACE, grace_us, 1, DURATION_MAX, "HELLO grace=") \
	NUMBER(5, HEARTBEAT, heartbeat_us, 0, DURATION_MAX, "HELLO heartbeat=, 0 for none") \
	TEXT(6, NAME, name, 1, JOURNAL_NAME_MAX, "the lock, or a slot of a semaphore") \
	TEXT(7, OWNER, owner, 0, 640, "of the session; of the lock of a job: the job; of a permit: what recall.h says") \
	TEXT(8, NOTE, note, 0, 256, "") \
	TEXT(9, VALUE, value, 1, 127, "what stands at the stores") \
	TEXT(10, PRIOR, prior, 1, 383, "of ADOPTING: passed over") \
	NUMBER(11, PRIOR_UNTIL, prior_until_us, INT64_MIN, INT64_MAX, "likewise") \
	NUMBER(12, COUNT, count, 1, UINT32_MAX, "how often it is held") \
	NUMBER(13, FENCE, fence, 1, COUNT_MAX, "") \
	NUMBER(14, TTL, ttl_us, 1, DURATION_MAX, "the longest lease that may have been told") \
	NUMBER(15, DELAY, delay_us, 0, DURATION_MAX, "the lock-delay") \
	NUMBER(16, RENEW, renew, 0, 15, "the sum of JOURNAL_RENEWED to JOURNAL_PERMIT, as far as they are true") \
	NUMBER(17, TOLD, told, 0, 1, "the client may know of it; else its turn came while it was away") \
	NUMBER(18, GRANTED, granted_at_us, INT64_MIN, INT64_MAX, "the moment of the grant") \
	NUMBER(19, DEADLINE, deadline_us, INT64_MIN, INT64_MAX, "the latest D that may be told; the watchdog moves it on without a record") \
	TEXT(20, REASON, reason, 1, 16, "of the loss, as LOST says it") \
	TEXT(21, QUEUE, queue, 1, NAME_MAX_BYTES, "of the job") \
	TEXT(22, JOB, job, 1, 64, "its id") \
	TEXT(23, LOCK, lock, 0, NAME_MAX_BYTES, "its lock; empty: none") \
	TEXT(24, BEFORE, before, 0, 127, "earlier versions wrote a value that stood at the home before: passed over") \
	NUMBER(25, ATTEMPT, attempt, 1, UINT32_MAX, "which attempt it is") \
	TEXT(26, DAEMON, daemon, 1, 63, "its id") \
	NUMBER(27, RUN, run, 0, JOURNAL_RUN_MOST, "how many runs with this id were before") \
	NUMBER(28, END, end, 0, 2, "how the job ends, an enum job_end")

struct journal_record {
	enum journal_kind kind;
#define JOURNAL_NUMBER(number, id, member, ...) int64_t member;
#define JOURNAL_TEXT(number, id, member, ...) struct span member;
	JOURNAL_PARTS(JOURNAL_NUMBER, JOURNAL_TEXT)
#undef JOURNAL_NUMBER
#undef JOURNAL_TEXT
};

/* Writes the parts of the record's kind, which must be within their bounds. Returns the length, at most JOURNAL_RECORD_MAX. */
size_t journal_encode(const struct journal_record *record, char *out);
/* 0; JOURNAL_UNKNOWN: a kind of a later version, to be passed over; -EBADMSG: it is no record. Texts point into the bytes; parts that the kind lacks are 0. */
#define JOURNAL_UNKNOWN 1
int journal_decode(struct span bytes, struct journal_record *ret_record) __attribute__((warn_unused_result));

#endif
