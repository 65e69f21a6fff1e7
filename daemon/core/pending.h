/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the stores are asked about, and that are answered later: `struct pending`. */
#ifndef CORE_PENDING_H
#define CORE_PENDING_H

#include "daemon/core/commander.h"

/* Whether the session may have one more request at the stores; false: the request was refused. */
bool pendings_within_limit(struct commander *x, struct session *s);
/* Notes that the request being served asks the stores about this lock, and is answered later. */
struct pending *pending_of_request(struct commander *x, struct session *s, struct lock *l);

#endif
