/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells a store's clock that was set forward from our clock that stood still: pure judgement, no calls. */
#include "daemon/core/member/clock_jump.h"

#include "daemon/core/member/clock_bounds.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/judge.h"
#include "daemon/core/member/same_jump.h"
#include "daemon/core/member/clock_first_look.h"
#include "daemon/core/member/quorum.h"

#include <inttypes.h>
#include <string.h>

/*
 * The store carried this call out before its clock jumped, or before we stood still: another connection was faster, or this store was slower than those that
 * showed our stop. So the answer says nothing of the clock since then. (If neither is so, the clock was set back.)
 */
static bool look_is_outdated(const struct member_clock *c, int64_t server_us, struct instant sent)
{
	return instant_before(sent, c->sure) && server_us - sent.us < c->low;
}

/* The last look was so long ago, or told so little, that a step beyond the tolerance need not show as a jump. */
static bool step_may_hide(const struct members *ms, const struct clock_bounds *before, struct instant sent)
{
	int64_t hidden = drift_of(instant_diff(ms->core->now, before->at)) + clock_width(before) + instant_diff(ms->core->now, sent);

	return before->known && hidden > JUMP_SLACK_US && hidden + JUMP_SLACK_US > ms->core->conf.clock_tol_us;
}

/* Notes what is known of all clocks now. If m jumps next, our stop must show in them since: what they have shown before is of an earlier stop. */
static void clocks_remember(const struct members *ms, struct member *m)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		m->beside[i] = ms->node[i].clock.firm;
}

/* The clock of m is known for the first time: nothing was known of it when the others were looked at. */
static void clock_is_met(struct members *ms, const struct member *m)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		ms->node[i].beside[m->index] = ms->node[i].jump.beside[m->index] = m->clock.firm;
}

/* A later look may narrow what is known of a jump, or add to it what is too little to be noticed as another. */
static void jump_note_shown(struct member *m, struct instant now)
{
	if (m->clock.firm.low > m->jump.shown_low + JUMP_SLACK_US) {
		m->jump.shown = now;
		m->jump.shown_low = m->clock.firm.low;
	}
}

bool jump_note(struct members *ms, struct member *m, int64_t server_us, struct instant sent)
{
	struct member_clock *c = &m->clock;
	struct clock_bounds before = clock_now(c);
	bool guessed = instant_before(c->sent, c->sure); /* m was not asked since a jump or a stop was found: what was known before may be a guess */
	int64_t jump, back;

	if (before.known && look_is_outdated(c, server_us, sent))
		return false;
	if (ms->core->conf.clock_tol_us > 0 && !m->clock_is_off && step_may_hide(ms, &before, sent))
		m->met.done = false;
	jump = clock_measure(c, server_us, sent, ms->core->now);
	c->again = before.known;
	c->sent = sent;
	back = clock_went_back(&before, c);
	m->jump.undone |= m->jump.open && back > 0;
	if (back > 0 && !guessed)
		first_look_note_back(ms, m, back);
	if (jump && !m->jump.open) {
		/* Of several jumps the sum is judged: the first has ended keys as well. */
		m->jump.before = before;
		memcpy(m->jump.beside, m->beside, sizeof(m->beside));
		m->jump.undone = m->jump.allowed = m->jump.denied = false;
		m->jump.first = m->jump.shown = ms->core->now;
		m->jump.shown_low = c->low;
	}
	if (ms->core->conf.nodes > 1) { /* a single store is compared with none */
		clock_confirm(c);
		clocks_remember(ms, m);
		if (m->jump.open)
			jump_note_shown(m, ms->core->now);
	}
	if (!before.known)
		clock_is_met(ms, m);
	if (!jump)
		return false;
	c->sure = ms->core->now;
	members_lower(ms, m->index, jump);
	m->jump.open = true;
	m->jump.seen = ms->core->now;
	m->jump.looked = INSTANT_NEVER;
	return true;
}

struct instant jump_look_at(const struct members *ms, const struct member *m)
{
	int64_t time_us = ms->core->conf.timeout_us, half_us = time_us / 2;

	if (m->jump.looked.us == INSTANT_NEVER.us)
		return instant_add(m->jump.seen, half_us);
	return instant_max(instant_add(m->jump.seen, time_us), instant_add(m->jump.looked, half_us));
}

void jump_look(const struct members *ms, struct member *m)
{
	m->jump.denied |= jump_is_denied(ms, m);
	if (m->jump.looked.us == INSTANT_NEVER.us && !instant_before(ms->core->now, jump_look_at(ms, m)))
		m->jump.looked = ms->core->now;
}

void jumps_look_anew(struct members *ms)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (ms->node[i].jump.looked.us != INSTANT_NEVER.us)
			ms->node[i].jump.looked = ms->core->now;
}

static bool jump_is_overdue(const struct members *ms, const struct member *m)
{
	return m->jump.looked.us != INSTANT_NEVER.us && !instant_before(ms->core->now, jump_look_at(ms, m));
}

/* m was looked at in the middle of our stop, and shows less of it than the others do. */
static bool jump_is_partial(const struct member *m)
{
	return m->jump.allowed && jump_move(m).most < -JUMP_SLACK_US;
}

/* m has shown all of our stop by now, and no more. */
static bool jump_has_gone(const struct member *m)
{
	return m->jump.allowed && !jump_is_partial(m) && jump_move(m).least <= JUMP_SLACK_US;
}

/* What m has shown may be from before our stop. Its next answer, however late, tells more; m is not used before. */
static bool jump_is_unread(const struct member *m)
{
	return (jump_is_partial(m) || jump_has_gone(m)) && instant_before(m->clock.sent, m->clock.sure);
}

enum jump_whose jump_judge(const struct members *ms, const struct member *m)
{
	unsigned nodes = ms->core->conf.nodes, like = 1, open = 0;

	if (m->jump.undone)
		return JUMP_THEIRS;
	if (jump_is_unread(m))
		return JUMP_OPEN;
	if (jump_has_gone(m))
		return JUMP_NONE;
	if (jump_is_partial(m))
		return jump_is_overdue(ms, m) ? JUMP_THEIRS : JUMP_OPEN;
	for (unsigned i = 0; i < nodes; i++) {
		enum likeness how = i == m->index ? UNLIKE : jump_likeness(m, &ms->node[i]);

		like += how == LIKE;
		open += how == NOT_KNOWN_YET || how == LOOK_AGAIN;
	}
	if (nodes > 1 && like >= quorum_of(nodes))
		return JUMP_OURS;
	if (like + open < quorum_of(nodes) || nodes == 1 || jump_is_overdue(ms, m))
		return JUMP_THEIRS;
	return JUMP_OPEN;
}

struct nodeset jump_asks(const struct members *ms, const struct member *m)
{
	struct nodeset asks = NODESET_NONE;

	/* m is asked once here, and again when its timer fires. */
	if (jump_is_unread(m) || jump_is_partial(m))
		return jump_is_unread(m) ? nodeset_of(m->index) : NODESET_NONE;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		enum likeness how = i == m->index ? UNLIKE : jump_likeness(m, &ms->node[i]);

		if (how == NOT_KNOWN_YET)
			nodeset_add(&asks, i);
		else if (how == LOOK_AGAIN)
			nodeset_add(&asks, m->index);
	}
	return asks;
}

/*
 * Allows for our stop in the open jump of another store: what it shows beyond the stop is its own. What was known of the clocks while this host stood still
 * may be of before the stop or after it.
 */
static void jump_allow(const struct members *ms, const struct member *m, struct member *other, struct move stop)
{
	if (!other->jump.open)
		return;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct clock_bounds *then = &other->jump.beside[i];

		*then = bounds_moved(*then, (struct move){instant_before(m->jump.before.at, then->at) ? 0 : stop.least, stop.most});
	}
	if (!instant_before(other->jump.before.at, m->jump.seen))
		return;
	other->jump.before = bounds_moved(other->jump.before, stop);
	other->jump.allowed = true;
}

/* How much of the stop another store's clock has certainly shown already, up to `most`. */
static int64_t jump_shown(const struct member *m, const struct member *other, int64_t most)
{
	struct clock_bounds now = clock_now(&other->clock);
	int64_t shown = clock_move(&m->jump.beside[other->index], &now).least;

	return shown < 0 ? 0 : shown < most ? shown : most;
}

/* The stop was over by then: one of the clocks that agree had shown it. */
static struct instant stop_over(const struct members *ms, const struct member *m, const enum likeness *how, struct move stop)
{
	struct instant over = m->jump.shown;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other->jump.open && how[i] == LIKE && jump_move(other).least + JUMP_SLACK_US >= stop.least && instant_before(other->jump.shown, over))
			over = other->jump.shown;
	}
	return over;
}

/*
 * Allows for the stop in what is known of a clock that has not shown it yet, or not certainly. A clock that is LIKE may have shown what is too little to be
 * noticed as a jump; an answer that came too late to tell may have shown a part. A clock that was looked at after the stop and does not show it was set back.
 */
static void clock_allow(const struct member *m, struct member *other, enum likeness how, struct move stop, struct instant over)
{
	bool unseen = instant_before(other->clock.sent, over), vague = how != LIKE && look_may_hide(&other->clock, stop);
	int64_t shown = how == LIKE || !unseen ? jump_shown(m, other, stop.most) : 0;

	if (other->jump.open || !(unseen || vague))
		return;
	other->clock.high += stop.most - shown;
	if (how != LIKE && shown < stop.least)
		other->clock.low += stop.least - shown;
}

/* This open jump shows more than our stop: the store had jumped by itself before, and keys have ended early there. */
static bool jump_is_sum(const struct member *m, struct move stop)
{
	return jump_move(m).least > stop.most + move_slack(stop);
}

/* Closes a jump. rest: what m lacks of our stop. If it certainly lacks some, m was looked at in the middle of the stop, and the rest is to come. */
static void jump_close(struct members *ms, struct member *m, struct move rest)
{
	m->jump.open = false;
	if (rest.least <= 0)
		return;
	members_lower(ms, m->index, rest.most);
	m->clock.high += rest.most;
	m->clock.firm = clock_now(&m->clock);
}

void jump_is_none(struct members *ms, struct member *m)
{
	struct move its = jump_move(m);

	jump_close(ms, m, (struct move){-its.most, -its.least});
}

/* The longest of the jumps that are alike: the other stores may have been looked at in the middle of the stop. */
static struct move jump_whole(const struct members *ms, const struct member *m, const enum likeness *how)
{
	struct move whole = jump_move(m);

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other->jump.open && how[i] == LIKE && jump_move(other).least > whole.most && !jump_is_sum(other, jump_move(m)))
			whole = jump_move(other);
	}
	return whole;
}

struct member *jump_next(struct members *ms, struct nodeset among)
{
	struct member *next = NULL;
	bool found = false;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];
		bool ours;

		if (!nodeset_has(among, i) || !m->jump.open)
			continue;
		ours = jump_judge(ms, m) == JUMP_OURS;
		if (next && (found > ours || (found == ours && jump_move(next).most <= jump_move(m).most)))
			continue;
		next = m;
		found = ours;
	}
	return next;
}

void jump_is_ours(struct members *ms, struct member *m)
{
	enum likeness how[NODES_MAX] = {UNLIKE};
	struct move stop = jump_move(m), whole, elsewhere;
	struct instant over;
	unsigned like = 1;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		how[i] = i == m->index ? LIKE : jump_likeness(m, &ms->node[i]);
		like += i != m->index && how[i] == LIKE;
	}
	whole = jump_whole(ms, m, how);
	over = stop_over(ms, m, how, stop);
	stop.most = whole.most;
	elsewhere = (struct move){stop.least - drift_us(stop.most), stop.most + drift_us(stop.most)};
	if (member_may_tell(ms, m, false))
		core_log(ms->core, LOG_WARN, "stood-still", "for_ms=%" PRId64 " stores=%u", stop.most / MSEC, like);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *other = &ms->node[i];

		if (!other->jump.open)
			members_lower(ms, i, stop.most);
		clock_allow(m, other, how[i], elsewhere, over);
		if (other->jump.open && how[i] == LIKE && !jump_is_sum(other, stop))
			jump_close(ms, other, (struct move){whole.least - jump_move(other).most, whole.most - jump_move(other).least});
		jump_allow(ms, m, other, elsewhere);
		first_look_note_stop(other, elsewhere.least);
		other->clock.sure = instant_max(other->clock.sure, over);
		if (!other->jump.open)
			other->clock.firm = clock_now(&other->clock);
	}
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		clocks_remember(ms, &ms->node[i]);
}

void jump_is_theirs(struct members *ms, struct member *m)
{
	m->jump.open = false;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		ms->node[i].beside[m->index] = m->clock.firm;
		ms->node[i].jump.beside[m->index].known = false;
	}
}
