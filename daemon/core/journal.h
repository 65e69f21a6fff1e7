/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the journal, as bytes: what the next life of the daemon must know to let clients resume. See ALGORITHMS.md, Adoption. One record is one
 * EFFECT_JOURNAL and comes back as one EVENT_RESTORE. Only sessions that asked for grace have any.
 *
 *   SESSION  begins a session, or changes what it asked for
 *   OVER     it has ended, with all that it held and had lost
 *   HELD     it holds the lock so from now on: a grant, a hand-over, another count, an EXTEND, an adoption. Whatever session, owner, value a record
 *            before named for the same name is superseded, so a value is adoptable only by the session of its last record. A longer lease is recorded
 *            before the stores are asked for it: they may grant it although EXTEND was answered ERR
 *   ADOPTING as HELD; but the stores are being asked to put this value in the place of others, any of which may still stand there. Written before
 *            they are asked, so that a life that ends within that round trip leaves all that the next must know
 *   FREED    (session, owner) holds the name no more, and its loss, if it was one, need not be remembered
 *   LOST     (session, owner) lost it: the fact is remembered, the value is not adoptable any more
 *
 * A record: version (1 byte), kind (1 byte), then the parts of that kind in the order of JOURNAL_PARTS: a number as 8 bytes, a text as 2 bytes of length
 * and its bytes, all little-endian. The reader is strict: a part beyond its bounds, a byte missing or too many, and the record is refused.
 * There is no checksum: framing, and telling a torn tail from a damaged middle, are the file's. Pure: no files, no clocks, no allocation.
 */
#ifndef CORE_JOURNAL_H
#define CORE_JOURNAL_H

#include "daemon/base/instant.h"
#include "proto/proto.h"

#define JOURNAL_VERSION    1
#define JOURNAL_RECORD_MAX 2048 /* bytes of one record, at most */

#define JOURNAL_PRIORS     3    /* values before the one of the record, at most: what lives that ended one after the other left */

enum journal_kind { JOURNAL_SESSION = 1, JOURNAL_OVER, JOURNAL_HELD, JOURNAL_FREED, JOURNAL_LOST, JOURNAL_ADOPTING };

/*
 * NUMBER(id, member, least, most, what it is), TEXT(id, member, least bytes, most bytes, what it is).
 * Times of day are CLOCK_BOOTTIME, durations microseconds.
 */
#define JOURNAL_PARTS(NUMBER, TEXT) \
	NUMBER(SESSION, session, 1, INT64_MAX, "the number of RESUME, and of people") \
	TEXT(SECRET, secret, 32, 32, "the secret of RESUME") \
	TEXT(LABEL, label, 0, 256, "HELLO name=") \
	NUMBER(GRACE, grace_us, 1, DURATION_MAX, "HELLO grace=") \
	NUMBER(HEARTBEAT, heartbeat_us, 0, DURATION_MAX, "HELLO heartbeat=, 0 for none") \
	TEXT(NAME, name, 1, NAME_MAX_BYTES, "the lock") \
	TEXT(OWNER, owner, 0, 256, "of the session") \
	TEXT(NOTE, note, 0, 256, "") \
	TEXT(VALUE, value, 1, 127, "what stands at the stores") \
	TEXT(PRIOR, prior, 1, JOURNAL_PRIORS * 128 - 1, "what stood there before and may still, newest first, separated by blanks") \
	NUMBER(PRIOR_UNTIL, prior_until_us, INT64_MIN, INT64_MAX, "when it stands nowhere any more") \
	NUMBER(COUNT, count, 1, UINT32_MAX, "how often it is held") \
	NUMBER(FENCE, fence, 1, COUNT_MAX, "") \
	NUMBER(TTL, ttl_us, 1, DURATION_MAX, "the longest lease that may have been told") \
	NUMBER(DELAY, delay_us, 0, DURATION_MAX, "the lock-delay") \
	NUMBER(RENEW, renew, 0, 1, "kept by the watchdog") \
	NUMBER(TOLD, told, 0, 1, "the client may know of it; else its turn came while it was away") \
	NUMBER(GRANTED, granted_at_us, INT64_MIN, INT64_MAX, "the moment of the grant") \
	NUMBER(DEADLINE, deadline_us, INT64_MIN, INT64_MAX, "the latest D that may be told; the watchdog moves it on without a record") \
	TEXT(REASON, reason, 1, 16, "of the loss, as LOST says it")

struct journal_record {
	enum journal_kind kind;
#define JOURNAL_NUMBER(id, member, ...) int64_t member;
#define JOURNAL_TEXT(id, member, ...) struct span member;
	JOURNAL_PARTS(JOURNAL_NUMBER, JOURNAL_TEXT)
#undef JOURNAL_NUMBER
#undef JOURNAL_TEXT
};

/* Writes the parts of its kind, which are within their bounds. Returns the length, at most JOURNAL_RECORD_MAX. */
size_t journal_encode(const struct journal_record *record, char *out);
/* 0, or -EBADMSG: not a record of this version. Texts point into the bytes; parts that the kind does not have are 0. */
int journal_decode(struct span bytes, struct journal_record *ret_record) __attribute__((warn_unused_result));

#endif
