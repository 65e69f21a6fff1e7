/* SPDX-License-Identifier: BSD-2-Clause */
/* What a request about a lock asks for, and the bounds that it must keep. A check that fails has answered the request. */
#ifndef CORE_REQUEST_TERMS_H
#define CORE_REQUEST_TERMS_H

#include "daemon/core/session/request_context.h"

bool refuse_name(struct request_context *x, struct session *s);
bool refuse_shared_terms(struct request_context *x, struct session *s);
bool refuse_bound(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what);

static inline bool name_is_allowed(struct request_context *x, struct session *s)
{
	return x->request.word[0].n <= x->core->conf.limits.name || refuse_name(x, s);
}

/* Of LOCK, LOCKALL and LOCKANY. A shared lock has no end and no lock-delay of its own. */
static inline bool terms_suit_mode(struct request_context *x, struct session *s)
{
	return !request_is_shared(&x->request) || refuse_shared_terms(x, s);
}

static inline bool bound_is_kept(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what)
{
	return !request_has(&x->request, field) || x->request.field[field].number <= most || refuse_bound(x, s, field, most, what);
}

#endif
