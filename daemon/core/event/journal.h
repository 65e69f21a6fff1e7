/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the journal, as bytes: what the next run of the daemon needs so that clients can resume. See ALGORITHMS.md, Adoption. One record is one
 * EFFECT_JOURNAL, and comes back as one EVENT_RESTORE. Only sessions that have grace, or had it, have records.
 *
 *   SESSION  a session begins, or changes its label, grace or heartbeat
 *   OVER     the session has ended; nothing that it held or lost is remembered
 *   HELD     the session holds the lock with these values from now on: after a grant, a hand-over, a change of the count, an EXTEND, an adoption. It
 *            supersedes every earlier record of the name, so only the session of the last record can adopt the value. But a shared hold does not
 *            supersede another shared hold of the same lease. A longer lease is recorded before the stores are asked for it: they may grant it although
 *            EXTEND was answered ERR. The records of one LOCKALL are consecutive, and all but the last have JOURNAL_MORE. If the file ends between them,
 *            all of them are void
 *   ADOPTING as HELD, written by earlier versions only: they gave each lease a new value when they adopted it, and named the values that it replaced
 *   FREED    (session, owner) no longer holds the name, and no loss of it is remembered
 *   LOST     (session, owner) has lost the name: the loss is remembered, and the value can no longer be adopted
 *   STAYS, KEPT  written by earlier versions only, after HELD or ADOPTING of a reader: an end or a lock-delay of its own. The reader skips them
 *   JOB      the session has the job, by a lease of this value. It supersedes every earlier record of this job and session
 *   JOB_LOST the session has lost the job: the loss is remembered, and keeps the lock. It supersedes as JOB does
 *   JOB_OVER the session no longer has the job, and no loss of it is remembered
 *   JOB_KNOWN after JOB: its client has sent a request about the job, so it has read the answer to its TAKE
 *   JOB_ENDING after JOB: the home is asked to end the job in this way. The session no longer has it. The next run asks for the same, until that moment
 *   DAEMON   the id of the daemon, with which its values begin, and how many runs with it came before. The next run keeps that id
 *
 * The daemon writes a snapshot while it goes on serving. It writes one session after the other, each with all that it has at that moment. Other records come in
 * between. If such a record is about a session that is not written yet, the reader skips it if no SESSION precedes it, and what follows supersedes it.
 * In a restart the process writes the same for all sessions, and the rest of its state (resume.h), for the next process. DAEMON comes first, with STORES:
 *
 *   STORES   which configuration MARKER names, the largest fence SEEN, and for how long leases of another configuration (DELAY) may last: UNTIL
 *   STORE    what is known of the store NAME: VALUE is the run of its server, MARKER the marker, SEEN to HIGH its last fence and clock, since SINCE
 *   MARKER   a marker, which shows whether the store lost its memory: see JOURNAL_VOUCHED to JOURNAL_EVIDENCE
 *   QUARANTINE the last one, or the one that is being timed: from SINCE to UNTIL, because of LINE. It is the SEQUENCE-th since STAMP; NOTE is the cause
 *   CLIENT   after the records of its session: its connection, and the peer
 *   LINE     one request, or a part of one. With SINCE, it waits, and is served again as if it had come then; without, it was read ahead
 *   UNANSWERED  a request that is not served again, because it is not known whether it was carried out. LINE has its tag
 *   WATCH    LINE is a prefix that the session watches; SUBSCRIBED: it has sent SUBSCRIBE. SEQUENCE: the number of events that were not sent to it yet
 *   GHOST    readers of the name that are gone may rely on their locks until then
 *   TICKET   our place in the queue of the name at the stores; LEFT: nobody wants it any more, and it is to be withdrawn from these stores
 *   LEAVES   the client has half-closed its connection, or ended it, or was killed: the session ends as soon as its requests are answered
 *   JOB_LEFT a job that no session has, by a lease of VALUE: until DEADLINE the home is asked to end it, as END says
 *   RELEASE  a value that nobody holds, but that may be at these stores, and is to be deleted; LEFT: its key stays for PX
 *
 * The outer layers write their own records before these (daemon/restart/records.h). PLACE says which of the inherited descriptors it is about, from 1 on:
 *
 *   PROCESS  SECRET marks the hand-over; SINCE and UNTIL: when the daemon was started, and since when clients wait; LINE: the runtime directory
 *   FILE     NAME says what it is
 *   LISTENER a listening socket: LINE is its path, UID and PID name the file
 *   SOCKET   a connection: SEQUENCE is the number of its session, LINE the name of its share
 *   BYTES    of the last SOCKET: bytes that were read and are no complete line yet; with OUTPUT: bytes to be sent
 *
 * A record is: version (1 byte), kind (1 byte), then its fields: number (1 byte), length (2 bytes), and that many bytes. A number has as few bytes as it needs.
 * All numbers are little-endian. A field that is 0 or empty is left out, and a missing field is 0 or empty. The reader skips fields and kinds that it does not
 * know: a later version has written them. So a later version may add a field whose absence means what it meant before, and a kind that an earlier one may
 * skip. It never gives a number another meaning. The reader refuses a field beyond its bounds, and a field that is cut by the end of the record.
 * Version 1 had the parts 1 to 27 of a kind in their order, without numbers: a number as 8 bytes, a text as 2 bytes of length and its bytes. It is read, but
 * no longer written. Records have no checksum; the file frames and checks them. Pure: no files, no clocks, no allocation.
 */
#ifndef CORE_JOURNAL_H
#define CORE_JOURNAL_H

#include "daemon/base/instant.h"
#include "proto/proto.h"

#define JOURNAL_VERSION    2
#define JOURNAL_RECORD_MAX 2048 /* most bytes of one record */

#define JOURNAL_NAME_MAX   528  /* the name of a slot is longer than any name of a client */

#define JOURNAL_RUN_MOST   (1 << 23)

/* The client gave its grace up: the session ends with the process. Nobody can ask for so little, and earlier builds refuse 0. */
#define JOURNAL_NO_GRACE   1

#define JOURNAL_RENEWED    1    /* kept by the watchdog */
#define JOURNAL_SHARED     2    /* held by a reader, alone or with others */
#define JOURNAL_MORE       4    /* of a LOCKALL: the next record belongs to the same one; without that this record is void */
#define JOURNAL_PERMIT     8    /* of a permit: see permit.h */

/* FLAGS */
#define JOURNAL_IS_UNIX    1
#define JOURNAL_IS_LOCAL   2
#define JOURNAL_IS_ADMIN   4
#define JOURNAL_PROVEN     8
#define JOURNAL_RESUMED    16
#define JOURNAL_RESUMING   32   /* LINE has the tag of its RESUME */
#define JOURNAL_LEAVING    64
#define JOURNAL_EOF        128
#define JOURNAL_AWAITING   256
#define JOURNAL_KILLED     512
#define JOURNAL_SUBSCRIBED 1024
#define JOURNAL_IS_CUT     2048 /* LINE is the beginning of a line that was too long */
#define JOURNAL_GOES_ON    4096 /* the next record has more of the line */
#define JOURNAL_LEFT       8192
#define JOURNAL_SHARE      16384 /* the value may be among shares */
#define JOURNAL_RISK       65536 /* of a hold or a job: its client was sent RISK */
#define JOURNAL_NOTIFIED      32768 /* of a loss: its client was sent LOST; of a job: over this connection */
/* FLAGS of PROCESS, LISTENER, SOCKET and BYTES */
#define JOURNAL_TORN       1
#define JOURNAL_TLS        1
#define JOURNAL_OUTPUT     1
#define JOURNAL_SKIPPING   8
#define JOURNAL_ENDED      16
#define JOURNAL_HALF       32
#define JOURNAL_MUTE       64
#define JOURNAL_AWAITS     128
#define JOURNAL_REFUSED    256
#define JOURNAL_CLOSING    512
#define JOURNAL_LINGERING  1024
#define JOURNAL_FAILED     2048

/* FLAGS of STORES, STORE and MARKER */
#define JOURNAL_TRUSTING   1    /* no store has joined yet, and none has shown a marker */
#define JOURNAL_WAS_OURS   1    /* it once had a marker of our configuration */
#define JOURNAL_CLOCK      2    /* its clock is known */
#define JOURNAL_MET        4    /* … and was compared with the others */
#define JOURNAL_VOUCHED    1    /* the last marker under which it was used */
#define JOURNAL_REPLACED_J 2    /* the last marker of a joined store that was replaced */
#define JOURNAL_REPLACED_Q 4    /* the last marker of a quarantine that was replaced */
#define JOURNAL_EVIDENCE   8    /* it has lost memory: WHY, while it had this marker */

enum journal_kind { JOURNAL_SESSION = 1, JOURNAL_OVER, JOURNAL_HELD, JOURNAL_FREED, JOURNAL_LOST, JOURNAL_ADOPTING, JOURNAL_JOB, JOURNAL_JOB_OVER,
	JOURNAL_STAYS, JOURNAL_KEPT, JOURNAL_JOB_LOST, JOURNAL_JOB_KNOWN, JOURNAL_DAEMON, JOURNAL_JOB_ENDING, JOURNAL_CLIENT, JOURNAL_LINE,
	JOURNAL_UNANSWERED, JOURNAL_WATCH, JOURNAL_GHOST, JOURNAL_TICKET, JOURNAL_RELEASE, JOURNAL_LEAVES, JOURNAL_STORES, JOURNAL_STORE,
	JOURNAL_MARKER, JOURNAL_QUARANTINE, JOURNAL_JOB_LEFT,
	JOURNAL_PROCESS = 64, JOURNAL_FILE, JOURNAL_LISTENER, JOURNAL_SOCKET, JOURNAL_BYTES };
#define JOURNAL_KIND_LAST JOURNAL_BYTES
#define JOURNAL_OUTER JOURNAL_PROCESS /* the outer layers' kinds begin here */
#define JOURNAL_LINE_MOST 32768 /* bytes of LINE */

/* The first bytes of the owner of LOST, and of the FREED after it, if they are about a permit: see permit.h. */
#define JOURNAL_LOSS_OWNER "\001lost "

/*
 * NUMBER(number, id, member, least, most, what it is), TEXT(number, id, member, least bytes, most bytes, what it is).
 * Moments are microseconds of CLOCK_BOOTTIME, durations microseconds.
 */
#define JOURNAL_PARTS(NUMBER, TEXT) \
	NUMBER(1, SESSION, session, 1, INT64_MAX, "the number of RESUME, and of people") \
	TEXT(2, SECRET, secret, 0, 32, "the secret of RESUME; in a restart it may have none") \
	TEXT(3, LABEL, label, 0, 256, "HELLO name=") \
	NUMBER(4, GRACE, grace_us, 0, DURATION_MAX, "HELLO grace=; none: 0 in a restart, else JOURNAL_NO_GRACE") \
	NUMBER(5, HEARTBEAT, heartbeat_us, 0, DURATION_MAX, "HELLO heartbeat=, 0 for none") \
	TEXT(6, NAME, name, 1, JOURNAL_NAME_MAX, "the lock, or a slot of a semaphore") \
	TEXT(7, OWNER, owner, 0, 640, "of the session; of the lock of a job: the job; of a permit: what permit.h says") \
	TEXT(8, NOTE, note, 0, 256, "of QUARANTINE: a word of defect.def") \
	TEXT(9, VALUE, value, 1, 127, "what stands at the stores") \
	TEXT(10, PRIOR, prior, 1, 383, "of ADOPTING: passed over") \
	NUMBER(11, PRIOR_UNTIL, prior_until_us, INT64_MIN, INT64_MAX, "likewise") \
	NUMBER(12, COUNT, count, 1, UINT32_MAX, "how often it is held") \
	NUMBER(13, FENCE, fence, 1, COUNT_MAX, "") \
	NUMBER(14, TTL, ttl_us, 1, DURATION_MAX, "the longest lease that may have been told") \
	NUMBER(15, DELAY, delay_us, 0, DURATION_MAX, "the lock-delay") \
	NUMBER(16, RENEW, renew, 0, 15, "the sum of JOURNAL_RENEWED to JOURNAL_PERMIT, as far as they are true") \
	NUMBER(17, NOTIFIED, notified, 0, 1, "the client may know of it; else its turn came while it was away.") \
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
	NUMBER(28, END, end, 0, 2, "how the job ends, an enum job_end") \
	TEXT(29, STORES, stores, 0, JOURNAL_LINE_MOST, "which stores PLACED counts; the journal has none") \
	NUMBER(30, CONNECTION, connection, 1, INT64_MAX, "its number") \
	NUMBER(31, FLAGS, flags, 0, INT64_MAX, "the sum of JOURNAL_IS_UNIX to JOURNAL_NOTIFIED, as far as they are true") \
	NUMBER(32, UID, uid, INT64_MIN, INT64_MAX, "of the peer") \
	NUMBER(33, PID, pid, INT64_MIN, INT64_MAX, "of the peer") \
	TEXT(34, ADDRESS, address, 0, 63, "of the peer; of STORE: where sentinels said that it is") \
	TEXT(35, USER, user, 0, JOURNAL_LINE_MOST, "who has shown itself by AUTH") \
	TEXT(36, GROUPS, groups, 0, UINT16_MAX, "of the peer: numbers of 4 bytes") \
	NUMBER(37, SINCE, since_us, INT64_MIN, INT64_MAX, "since when") \
	NUMBER(38, UNTIL, until_us, INT64_MIN, INT64_MAX, "until when; of HELD in a restart: the end of the lease, unless it is renewed") \
	TEXT(39, LINE, line, 0, JOURNAL_LINE_MOST, "") \
	NUMBER(40, PLACED, placed, 0, UINT16_MAX, "stores, a bit each; of HELD: those that may have been without the key although their votes stand") \
	NUMBER(41, STAMP, stamp_us, 0, INT64_MAX, "the moment of the ticket; of QUARANTINE: of the first loss") \
	NUMBER(42, SEQUENCE, sequence, 0, INT64_MAX, "its number") \
	NUMBER(43, READER, reader, 0, 1, "it is that of a reader") \
	NUMBER(44, WRITER, writer_us, 0, INT64_MAX, "the moment of the first writer behind it") \
	NUMBER(45, PRIORITY, priority, 0, 9, "of the waiter whose ticket it is") \
	NUMBER(46, PX, px_us, 0, DURATION_MAX, "for how long the key stays") \
	NUMBER(47, PLACE, place, 0, UINT32_MAX, "of the descriptor; 0: there is none") \
	TEXT(48, MARKER, marker, 0, 255, "of a store") \
	NUMBER(49, SEEN, seen, 0, INT64_MAX, "the largest fence that was seen") \
	NUMBER(50, JOINED, joined, 0, INT64_MAX, "its fence when it was last found joined") \
	NUMBER(51, ISSUED, issued_us, INT64_MIN, INT64_MAX, "how far its fence may have come then") \
	NUMBER(52, EVICTED, evicted, 0, INT64_MAX, "how many keys it has evicted") \
	NUMBER(53, LOW, low_us, INT64_MIN, INT64_MAX, "by how much its clock was ahead of this host's, at least; of VOUCHED: what it showed") \
	NUMBER(54, HIGH, high_us, INT64_MIN, INT64_MAX, "and at most") \
	NUMBER(55, WHY, why, 0, 255, "an enum evidence, whose numbers do not change") \
	TEXT(56, VOTES, votes, 0, 72, "of HELD in a restart: until when each store keeps the value, 8 bytes each; empty: the stores are asked") \
	TEXT(57, TRACE, trace, 0, TRACE_BYTES, "of HELD, ADOPTING and LINE")

struct journal_record {
	enum journal_kind kind;
#define JOURNAL_NUMBER(number, id, member, ...) int64_t member;
#define JOURNAL_TEXT(number, id, member, ...) struct span member;
	JOURNAL_PARTS(JOURNAL_NUMBER, JOURNAL_TEXT)
#undef JOURNAL_NUMBER
#undef JOURNAL_TEXT
};

/*
 * Writes the parts of the record's kind, which must be within their bounds. Returns the length: at most JOURNAL_RECORD_MAX plus the bytes of STORES to LINE.
 */
size_t journal_encode(const struct journal_record *record, char *out);
/* 0; JOURNAL_UNKNOWN: a kind of a later version, to be skipped; -EBADMSG: not a record. Texts point into the bytes; parts that the kind lacks are 0. */
#define JOURNAL_UNKNOWN 1
int journal_decode(struct span bytes, struct journal_record *ret_record) __attribute__((warn_unused_result));

#endif
