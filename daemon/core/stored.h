/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What jobs and rate limits may take at the store that is their home: limits.stored for all clients, and half of it for those of one peer. The store counts.
 */
#ifndef CORE_STORED_H
#define CORE_STORED_H

#include "daemon/core/commander.h"

/* The words that end each question that may store something: the peer of the session, and how many bytes all, and this peer, may have. NULL: no peer. */
void stored_put_terms(const struct commander *x, const struct session *s, struct buf *words);
/* ERR LIMIT: the store has said by this word which of the two is too small. */
void tell_stored_full(struct commander *x, struct session *s, struct span tag, struct span word);

#endif
