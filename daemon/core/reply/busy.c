/* SPDX-License-Identifier: BSD-2-Clause */
/* See busy.h. */
#include "daemon/core/reply/busy.h"

#include "daemon/core/reply/remote_holders.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/slow_log.h"
#include "daemon/core/reply/tell.h"

/* Who has it longest, other than this owner: a reader that asks to be alone waits for the others. NULL: nobody else has it. */
static const struct claim *holder_in_the_way(const struct lock *l, const struct session *s, struct span owner)
{
	return l->holder && claim_is_of(l->holder, s, owner) ? lock_next_holder(l, l->holder) : l->holder;
}

static void reply_holder_here(struct request_context *x, struct reply *r, const struct lock *l, const struct claim *holder)
{
	char who[WHO_MAX];

	reply_text(r, "holder", (struct span){who, session_who(holder->session, who)});
	reply_ms(r, "held_ms", instant_diff(x->core->now, holder->granted_at));
	reply_remark(r, claim_remark(holder));
	if (l->share) {
		reply_mode(r, holder);
		reply_int(r, "holders", lock_holders(l));
	}
}

/* What the stores have shown of it, and what its daemon has told. */
static void reply_holder_there(struct request_context *x, struct reply *r, struct span name, const struct elsewhere *elsewhere)
{
	int64_t held_us = -1;
	const struct holder_text *c = remote_holder_card(x, name, elsewhere, &held_us);

	reply_elsewhere(r, elsewhere);
	if (c) {
		reply_remote_who(r, c);
		reply_ms(r, "held_ms", held_us);
		reply_remark(r, c->remark);
	} else {
		reply_elsewhere_held(x, r, elsewhere);
	}
	if (elsewhere->shared)
		reply_text(r, "mode", SPAN("shared"));
}

static void reply_elsewhere_holder(struct request_context *x, struct reply *r, struct span name, const struct elsewhere *elsewhere)
{
	if (!elsewhere->known)
		return;
	if (elsewhere->foreign) {
		reply_elsewhere(r, elsewhere);
		reply_int(r, "ttl_ms", elsewhere->pttl_ms);
	} else if (elsewhere->host[0]) {
		reply_holder_there(x, r, name, elsewhere);
	} else if (elsewhere->kept) {
		reply_elsewhere_held(x, r, elsewhere);
	}
}

static void busy_begin(struct request_context *x, struct reply *r, struct span tag, struct span name)
{
	metric_add(&x->core->metrics, METRIC_REFUSALS, 1);
	reply_begin(r, session_line(x->sessions), tag, "BUSY");
	reply_text(r, "name", name);
}

static void busy_end(struct request_context *x, struct session *s, struct reply *r, unsigned waiters, int64_t retry_us)
{
	reply_int(r, "waiters", waiters);
	if (retry_us >= 0)
		reply_ms(r, "retry_ms", retry_us + MSEC - 1);
	tell_line(x, s, r);
}

static void reply_holder(struct request_context *x, struct reply *r, const struct lock *l, const struct session *s, struct span owner)
{
	const struct claim *holder = holder_in_the_way(l, s, owner);

	if (holder)
		reply_holder_here(x, r, l, holder);
	else
		reply_elsewhere_holder(x, r, lock_name(l), &l->contender->elsewhere);
}

void busy_tell(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner)
{
	struct reply r;

	busy_begin(x, &r, tag, lock_name(l));
	reply_holder(x, &r, l, s, owner);
	busy_end(x, s, &r, l->contender->patient, lock_retry_us(&x->engine->table, l));
}

void busy_tell_timeout(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct span trace,
		       struct instant asked_at)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_TIMEOUTS, 1);
	slow_wait(x, s, lock_name(l), trace, asked_at, "timeout");
	reply_begin(&r, session_line(x->sessions), tag, "TIMEOUT");
	reply_text(&r, "name", lock_name(l));
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, asked_at));
	reply_holder(x, &r, l, s, owner);
	busy_end(x, s, &r, l->contender->patient, -1);
}
