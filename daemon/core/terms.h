/* SPDX-License-Identifier: BSD-2-Clause */
/* What a request about a lock asks for, and the bounds that it must keep. A check that fails has answered the request. */
#ifndef CORE_TERMS_H
#define CORE_TERMS_H

#include "daemon/core/commander.h"

static inline struct span request_owner(const struct request *q)
{
	return request_has(q, FIELD_OWNER) ? q->field[FIELD_OWNER].text : SPAN("");
}

static inline struct span request_note(const struct request *q)
{
	return request_has(q, FIELD_NOTE) ? q->field[FIELD_NOTE].text : SPAN("");
}

static inline unsigned request_priority(const struct request *q)
{
	return request_has(q, FIELD_PRIORITY) ? (unsigned)q->field[FIELD_PRIORITY].number : 0;
}

static inline bool request_is_shared(const struct request *q)
{
	return request_has(q, FIELD_MODE) && q->field[FIELD_MODE].number == MODE_SHARED;
}

static inline bool request_is_renewed(const struct request *q)
{
	return !request_has(q, FIELD_RENEW) || q->field[FIELD_RENEW].number;
}

/* count=; 0: it has none, or that. */
static inline unsigned request_count(const struct request *q)
{
	return request_has(q, FIELD_COUNT) ? (unsigned)q->field[FIELD_COUNT].number : 0;
}

/* out has room for TAG_MAX + 1 bytes. */
static inline void request_keep_tag(const struct request *q, char *out)
{
	memcpy(out, q->tag.p, q->tag.n);
	out[q->tag.n] = '\0';
}

bool refuse_name(struct commander *x, struct session *s);
bool refuse_shared_terms(struct commander *x, struct session *s);
bool refuse_bound(struct commander *x, struct session *s, enum field field, int64_t most, const char *what);

static inline bool name_is_allowed(struct commander *x, struct session *s)
{
	return x->request.word[0].n <= x->core->conf.limits.name || refuse_name(x, s);
}

/* Of LOCK, LOCKALL and LOCKANY. A shared lock has no end and no lock-delay of its own. */
static inline bool terms_suit_mode(struct commander *x, struct session *s)
{
	return !request_is_shared(&x->request) || refuse_shared_terms(x, s);
}

static inline bool bound_is_kept(struct commander *x, struct session *s, enum field field, int64_t most, const char *what)
{
	return !request_has(&x->request, field) || x->request.field[field].number <= most || refuse_bound(x, s, field, most, what);
}

#endif
