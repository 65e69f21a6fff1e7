/* SPDX-License-Identifier: BSD-2-Clause */
/* See request_terms.h. */
#include "daemon/core/reply/request_terms.h"

#include "daemon/core/reply/tell.h"

#include <inttypes.h>

bool refuse_name(struct request_context *x, struct session *s)
{
	tell_mistake(x, s, ERROR_LIMIT, "a name may have at most %" PRIu64 " bytes (limits.name)", x->core->conf.limits.name);
	return false;
}

bool refuse_shared_terms(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool once = !request_is_renewed(q), delays = request_has(q, FIELD_DELAY) && q->field[FIELD_DELAY].number > 0;

	if (!once && !delays)
		return true;
	tell_mistake(x, s, ERROR_ARG, "%s is for exclusive locks: the daemon renews a shared lock until it is unlocked, and then it is free at once",
	             once ? "renew=no" : "delay=");
	return false;
}

bool refuse_bound(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what)
{
	tell_mistake(x, s, ERROR_LIMIT, "%s may be at most %" PRId64 "ms (%s)", field_table[field].word, most / MSEC, what);
	return false;
}
