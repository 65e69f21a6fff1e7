/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays the journal of the previous run. Its sessions are there again, without connections, and what they held counts as held until the stores have
 * decided. Records come in order, and each builds on those before it. After a record that makes no sense none is believed.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H

#include "daemon/base/buf.h"
#include "daemon/core/session/request_context.h"

/* 0; or -EBADMSG: the record makes no sense, and nothing of the journal is believed any more. */
int restore_record(struct request_context *x, struct span record) __attribute__((warn_unused_result));
/* That was the last record. */
void restore_end(struct request_context *x);

/*
 * In a restart sessions have their connections again, and what they asked for waits here until the stores have said who they are and all holds are adopted, or
 * until a second has passed. The outer layer reads no line before request_context.handed is NULL.
 */
struct handed {
	struct buf waiting;      /* records */
	struct buf line;         /* what came of a line whose record goes on */
	struct buf tickets;      /* of struct name * */
	struct timer timer;      /* TIMER_HANDED: the next look */
	struct instant until;
	bool same_stores;
	bool same_configuration; /* … and markers are the same */
};
/* A line that is to be served as if it had come at asked_at; 0: it was read ahead. session NULL: there is none. */
struct restored_line {
	struct session *session;
	struct input line;
	struct instant asked_at;
};
bool restore_may_go_on(struct request_context *x); /* the timer has fired; false: not yet, and it is set again */
/* False: that was all, and x->handed is NULL. The line is valid until the next call. */
bool restore_next(struct request_context *x, struct restored_line *ret_line);
void restore_free(struct request_context *x);

#endif
