/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request line while it is put together.
 */
#ifndef CLIENT_DRAFT_H
#define CLIENT_DRAFT_H

#include "client/lib/buffer.h"
#include "client/lib/redlock.h"
#include "proto/proto.h"

#define TAG_TO_CANCEL "@lock " /* of a request that redlock_cancel can withdraw */

struct draft {
	struct buffer line; /* with a NUL and without LF; less than LINE_MAX_DEFAULT bytes */
	size_t n;
	int error; /* -EMSGSIZE: something did not fit; -ENOMEM. The line is not to be sent */
};

void draft_release(struct draft *d);

/* "VERB" alone. */
void draft_verb(struct draft *d, const char *verb);
/* "VERB name", quoted. */
void draft_begin(struct draft *d, const char *verb, const char *name);
void draft_text(struct draft *d, const char *text);
/* Appends `before` as it is, then text, quoted where it must be. */
void draft_quoted(struct draft *d, const char *before, const char *text);
/* The same for any bytes. */
void draft_bytes(struct draft *d, const char *before, struct redlock_bytes text);
/* " owner=…", unless it is "". */
void draft_owner(struct draft *d, const char *owner);
/* " field=…" */
void draft_number(struct draft *d, const char *field, int64_t number);
/* " field=…ms" */
void draft_ms(struct draft *d, const char *field, int64_t ms);
/* " wait=…", unless it is 0; tells where that stands. */
void draft_wait(struct draft *d, int64_t wait_ms, size_t *ret_wait_at, size_t *ret_wait_n);
/* The options of a LOCK. Tells where " wait=…" stands. */
void draft_options(struct draft *d, const struct redlock_options *o, size_t *ret_wait_at, size_t *ret_wait_n);

#endif
