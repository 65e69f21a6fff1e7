/* SPDX-License-Identifier: BSD-2-Clause */
/* See terms.h. */
#include "daemon/core/terms.h"

#include "daemon/core/renewals.h"
#include "daemon/core/tell.h"

#include <inttypes.h>

bool refuse_name(struct commander *x, struct session *s)
{
	tell_mistake(x, s, ERROR_LIMIT, "a name may have at most %" PRIu64 " bytes (limits.name)", x->core->conf.limits.name);
	return false;
}

bool ttl_is_allowed(struct commander *x, struct session *s)
{
	const struct core_conf *conf = &x->core->conf;
	int64_t ttl = request_has(&x->request, FIELD_TTL) ? x->request.field[FIELD_TTL].number : conf->lease_us;

	if (!request_has(&x->request, FIELD_TTL) || (ttl >= conf->min_lease_us && ttl <= conf->max_lease_us))
		return ttl >= RENEWALS_LONG_US || renewals_allow(x, s, ttl);
	tell_mistake(x, s, ERROR_LIMIT, "ttl must be from %" PRId64 "ms (min_lease) to %" PRId64 "ms (max_lease)",
	             conf->min_lease_us / MSEC, conf->max_lease_us / MSEC);
	return false;
}

bool refuse_shared_terms(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	bool once = request_has(q, FIELD_RENEW) && !q->field[FIELD_RENEW].number, delays = request_has(q, FIELD_DELAY) && q->field[FIELD_DELAY].number > 0;

	if (!once && !delays)
		return true;
	tell_mistake(x, s, ERROR_ARG, "%s is for exclusive locks: the daemon renews a shared lock until it is unlocked, and then it is free at once",
	             once ? "renew=no" : "delay=");
	return false;
}

bool refuse_bound(struct commander *x, struct session *s, enum field field, int64_t most, const char *what)
{
	tell_mistake(x, s, ERROR_LIMIT, "%s may be at most %" PRId64 "ms (%s)", field_table[field].word, most / MSEC, what);
	return false;
}
