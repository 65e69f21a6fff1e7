/* SPDX-License-Identifier: BSD-2-Clause */
/* See refusal.h. */
#include "daemon/core/reply/refusal.h"

#include "daemon/core/member/health.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/session/semaphore.h"

#include <inttypes.h>
#include <stdio.h>

/* Too few stores can be used; or those that can be used were busy, or did not comply. How many have answered is not known here. */
static void deliver_no_quorum(struct request_context *x, struct session *s, struct span tag, enum refusal why)
{
	unsigned nodes = x->core->conf.nodes, quorum = quorum_of(nodes), usable = members_serving(&x->engine->members);
	int64_t pending = members_pending_us(&x->engine->members);
	char retry[96] = "", stores[400] = "";

	(usable < quorum ? health_tell_missing : health_tell_serving)(&x->engine->members, stores, sizeof(stores));
	if (pending >= 0)
		snprintf(retry, sizeof(retry), "; enough are back in %" PRId64 " ms retry_ms=%" PRId64, pending / MSEC + 1, pending / MSEC + 1);
	if (usable < quorum)
		tell_error(x, s, tag, ERROR_QUORUM, "%u of %u stores can be used, %u are needed: %s%s", usable, nodes, quorum, stores, retry);
	else if (why == REFUSED_NOT_ADMITTED)
		tell_error(x, s, tag, ERROR_QUORUM,
		           "%u of %u stores can be used, but are too busy: the request was not sent to them in time; wait longer, or send fewer at a time",
		           usable, nodes);
	else if (why == REFUSED_NOT_EXTENDED)
		tell_error(x, s, tag, ERROR_QUORUM,
			   "%u of %u stores can be used, but are too busy: the lock is still held, but was not extended in time; "
			   "ask again, or send fewer at a time", usable, nodes);
	else
		tell_error(x, s, tag, ERROR_QUORUM, "%u of %u stores can be used, but fewer than %u complied in time%s", usable, nodes, quorum,
			   stores[0] ? stores : "; LIST nodes shows them");
}

void deliver_refusal(struct request_context *x, struct session *s, struct span tag, enum refusal why)
{
	switch (why) {
	case REFUSED_QUORUM:
	case REFUSED_NOT_ADMITTED:
	case REFUSED_NOT_EXTENDED:
		deliver_no_quorum(x, s, tag, why);
		break;
	case REFUSED_KIND:
		tell_error(x, s, tag, ERROR_KIND,
			   "the stores have a key of another type under this name; redlockd leaves it alone: take another name, or remove that key");
		break;
	case REFUSED_IN_USE:
		tell_error(x, s, tag, ERROR_KIND, "the name is in use by a semaphore: take another name, or ask when nobody has a permit of it");
		break;
	case REFUSED_CANCELLED:
		tell_error(x, s, tag, ERROR_CANCELLED, "the waiting request was withdrawn");
		break;
	case REFUSED_DRAINING:
		tell_draining(x, s, tag);
		break;
	case REFUSED_DENIED:
		tell_revoked(x, s, tag);
		break;
	case REFUSED_CROWD:
		tell_crowded(x, s, tag);
		break;
	case REFUSED_SLOTS:
		tell_error(x, s, tag, ERROR_LIMIT, "a session may be the first in line for at most %d slots of semaphores: wait for some in another session",
		           SLOTS_OF_SESSION);
		break;
	case REFUSED_COUNT:
		tell_error(x, s, tag, ERROR_LIMIT, "an owner holds a lock at most %u times at once", HOLDS_MOST);
		break;
	case REFUSED_SHARED:
		tell_error(x, s, tag, ERROR_ARG, "this owner holds it shared: UNLOCK it, then LOCK it exclusively");
		break;
	case REFUSED_LOST:
		tell_error(x, s, tag, ERROR_LOST, "the stores say that this session did not hold the lock any more");
		break;
	default:
		tell_error(x, s, tag, ERROR_INTERNAL, "refusal %d", (int)why);
		break;
	}
}

enum refusal withdrawn_why(const struct request_context *x, bool denied)
{
	return denied ? REFUSED_DENIED : x->engine->draining ? REFUSED_DRAINING : REFUSED_CANCELLED;
}

enum result refusal_result(enum refusal why)
{
	return why == REFUSED_BUSY ? RESULT_BUSY : why == REFUSED_TIMEOUT ? RESULT_TIMEOUT : RESULT_ERROR;
}
