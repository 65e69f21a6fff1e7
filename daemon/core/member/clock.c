/* SPDX-License-Identifier: BSD-2-Clause */
/* See clock.h. */
#include "daemon/core/member/clock.h"

#include "daemon/core/member/health.h"
#include "daemon/core/member/members.h"
#include "daemon/core/member/membership.h"

#include <inttypes.h>
#include <string.h>

int64_t clock_measure(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received)
{
	/* The store may have run the call as soon as it was sent, and the clocks may have drifted apart since. */
	int64_t low = server_us - received.us, high = server_us - sent.us + drift_of(instant_diff(received, sent)), jump = 0;

	if (clock->known) {
		int64_t widen = drift_of(instant_diff(received, clock->at)) + JUMP_SLACK_US;
		int64_t old_low = clock->low - widen, old_high = clock->high + widen;

		if (low > old_high) {
			jump = high - clock->low;
		} else if (high >= old_low) {
			/* Both are true of one clock: keep what both allow. */
			low = low > old_low ? low : old_low;
			high = high < old_high ? high : old_high;
		}
	}
	clock->known = true;
	clock->low = low;
	clock->high = high;
	clock->at = received;
	return jump;
}

/* Narrows `firm` by the last look, or replaces it if they disagree. So late answers do not widen it: many of them would hide what was seen in time. */
static void clock_confirm(struct member_clock *c)
{
	struct clock_bounds seen = clock_now(c), both = seen;
	int64_t drift = drift_us(instant_diff(seen.at, c->firm.at));

	if (c->firm.low - drift > both.low)
		both.low = c->firm.low - drift;
	if (c->firm.high + drift < both.high)
		both.high = c->firm.high + drift;
	c->firm = c->firm.known && both.low <= both.high ? both : seen;
}

int64_t clock_went_back_beyond_drift(const struct clock_bounds *then, const struct member_clock *c)
{
	int64_t back = then->low - c->high - JUMP_SLACK_US - drift_us(instant_diff(c->at, then->at));

	return back > 0 ? back : 0;
}

struct move clock_move(const struct clock_bounds *then, const struct clock_bounds *now)
{
	int64_t drift = drift_us(instant_diff(now->at, then->at));

	return (struct move){now->low - then->high - drift, now->high - then->low + drift};
}

static struct clock_bounds bounds_moved(struct clock_bounds b, struct move by)
{
	b.low += by.least;
	b.high += by.most;
	return b;
}

/* With this many others, their median is the clock of a store that was not set forward, even if m belongs to a minority that was. */
static bool first_look_has_enough(const struct members *ms, unsigned others)
{
	unsigned minority = ms->core->conf.nodes - quorum_of(ms->core->conf.nodes);

	return others + 1 >= 2 * minority;
}

/* All others that can tell were asked after that moment, and none has an open jump: if that is our stop, the bounds of m do not allow for it yet. */
static bool first_look_has_answers(const struct members *ms, const struct member *m, struct instant since)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *other = &ms->node[i];

		if (other != m && other->connected && other->clock.known && !other->stalled && !other->failed &&
		    (other->jump.open || instant_before(other->clock.sent, since)))
			return false;
	}
	return true;
}

/* The clock of m was set back by at least this much, beyond drift and what is too little to notice. */
static void first_look_note_back(const struct members *ms, struct member *m, int64_t back_us)
{
	int64_t most = ms->core->conf.clock_tol_us;

	m->met.set_back |= most > 0 && !m->met.done && back_us > (m->met.ahead ? 0 : most);
}

/* This host stood still for at least this long, since m was looked at, or before that. */
static void first_look_note_stop(struct member *m, int64_t least_us)
{
	m->met.stop_us += m->met.ahead ? least_us : 0;
}

static int64_t first_look_slack_us(const struct member *m)
{
	return JUMP_SLACK_US + drift_us(instant_diff(m->clock.at, m->met.at));
}

/* The clock of m went on without ours after it seemed to be ahead, so the stop of this host that was found later came after that; otherwise it came before. */
static bool first_look_shows_stop(const struct member *m)
{
	return m->clock.low - m->met.high > first_look_slack_us(m);
}

/* The clock of m was set back while this host stood still. */
static bool first_look_went_back(const struct member *m)
{
	return m->met.ahead && m->met.stop_us > 0 && m->met.low - m->clock.high > first_look_slack_us(m);
}

static void first_look_note_ahead(const struct members *ms, struct member *m)
{
	m->met.ahead = true;
	m->met.at = ms->core->now;
	m->met.low = m->clock.low;
	m->met.high = m->clock.high;
	m->met.stop_us = 0;
}

bool first_look_was_ahead(struct members *ms, struct member *m)
{
	int64_t most = ms->core->conf.clock_tol_us, host = ms->core->wall_us - ms->core->now.us, low = m->clock.low;
	struct instant since = m->clock.sure;
	bool asked = m->met.ahead;
	struct middle others;

	/* If the clock was not looked at after our stop was allowed for, its bounds are a guess. And an open jump is judged first. */
	if (m->met.done || most == 0 || !m->clock.known || m->jump.open || instant_before(m->clock.sent, since))
		return false;
	if (m->met.set_back || first_look_went_back(m)) {
		m->met.ahead = m->met.set_back = false;
		return true;
	}
	if (asked) {
		since = instant_max(since, m->met.at);
		low = m->met.low + (first_look_shows_stop(m) ? m->met.stop_us : 0);
	}
	if ((asked && !first_look_has_answers(ms, m, since)) || !judge_median(ms, m, since, &others))
		return false;
	if (low - others.high <= most || low - host <= most) {
		m->met.ahead = false;
		m->met.done = m->clock.high - others.upper_low <= most && first_look_has_enough(ms, others.others);
		return false;
	}
	if (!asked) {
		first_look_note_ahead(ms, m);
		return false;
	}
	m->met.ahead = false;
	m->met.done = true;
	return true;
}

/* Whether the clocks of two stores show the same jump. See clock.h for the consequences. */

enum comparison { LIKE, UNLIKE, NOT_KNOWN_YET, LOOK_AGAIN };

/* By how much the clock of m has jumped. */
static inline struct move jump_move(const struct member *m)
{
	return clock_move(&m->jump.before, &m->clock.firm);
}

/* How much two moves that are one stop may differ. A clock may move by too little to notice, and the two drift apart while ours stands still. */
static int64_t move_slack(struct move its)
{
	return JUMP_SLACK_US + drift_us(its.most);
}

/* Their bounds overlap, and the other move is certainly more than half of the least of this one. A move that may be 0 is like no other. */
static bool moves_are_alike(struct move its, struct move others)
{
	return its.least > 0 && 2 * others.least > its.least && others.least <= its.most + move_slack(its) && its.least <= others.most + move_slack(its);
}

/* Both have jumped, perhaps at the same moment. The bounds of each just before its jump say more than those of the last look at m. */
static bool jumps_are_alike(const struct member *m, const struct member *other)
{
	bool overlap = other->jump.open && instant_before(m->jump.before.at, other->jump.seen) && instant_before(other->jump.before.at, m->jump.seen);

	return overlap && moves_are_alike(jump_move(m), jump_move(other));
}

/* The answer of m came so late that the jump may be twice as long, and another look at m would show it. */
static bool clock_is_rough(const struct member *m, struct move its)
{
	return m->connected && clock_width(&m->clock.firm) > its.least + move_slack(its);
}

/* The answer came so late that it fits the old clock, and also half a jump more. */
static bool look_may_hide(const struct member_clock *c, struct move its)
{
	return 2 * instant_diff(c->at, c->sent) >= its.least;
}

/*
 * The jump of m was denied, so it is m's own, unless the clock of the store that denied it stood still or was set back. If another store jumps later, that
 * may be a stop that m has not shown yet. A new look at m decides.
 */
static bool jump_is_disputed(const struct member *m, const struct member *other)
{
	return m->jump.open && m->jump.denied && other->jump.open && instant_before(m->clock.sent, other->jump.seen);
}

/* Another store was asked after the jump was first seen, has answered soon, and shows less than half of it. */
static bool jump_is_denied(const struct members *ms, const struct member *m)
{
	struct move its = jump_move(m);

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct clock_bounds *then = &m->jump.beside[i];
		const struct member_clock *c = &ms->node[i].clock;

		if (i != m->index && then->known && !instant_before(c->sent, m->jump.first) && !look_may_hide(c, its) &&
		    2 * clock_move(then, &c->firm).most < its.least)
			return true;
	}
	return false;
}

/* Whether another store's clock shows the jump of m. LOOK_AGAIN: perhaps, or it shows more; another look at m would decide. */
static enum comparison jump_compare(const struct member *m, const struct member *other)
{
	const struct clock_bounds *then = &m->jump.beside[other->index];
	struct move its = jump_move(m), others = clock_move(then, &other->clock.firm);

	if (!then->known || (other->jump.open && other->jump.undone))
		return UNLIKE;
	if (moves_are_alike(its, others) || jumps_are_alike(m, other)) {
		if (clock_is_rough(m, its) || jump_is_disputed(m, other))
			return LOOK_AGAIN;
		return clock_is_rough(other, its) || jump_is_disputed(other, m) ? NOT_KNOWN_YET : LIKE;
	}
	if (others.least > its.most + move_slack(its) && m->connected && instant_before(m->clock.sent, other->clock.at))
		return LOOK_AGAIN;
	return instant_before(other->clock.sent, m->jump.seen) || look_may_hide(&other->clock, its) ? NOT_KNOWN_YET : UNLIKE;
}

/* Distinguishes a store's clock that was set forward from our clock that stood still. Pure judgement, no calls. */

/*
 * The store carried this call out before its clock jumped, or before we stood still. Either another connection was faster, or this store was slower than
 * those that showed our stop. So the answer says nothing about the clock after that. (If neither is true, the clock was set back.)
 */
static bool look_is_outdated(const struct member_clock *c, int64_t server_us, struct instant sent)
{
	return instant_before(sent, c->sure) && server_us - sent.us < c->low;
}

/* The last look was so long ago, or so inexact, that a step beyond the tolerance need not show as a jump. */
static bool step_may_hide(const struct members *ms, const struct clock_bounds *before, struct instant sent)
{
	int64_t hidden = drift_of(instant_diff(ms->core->now, before->at)) + clock_width(before) + instant_diff(ms->core->now, sent);

	return before->known && hidden > JUMP_SLACK_US && hidden + JUMP_SLACK_US > ms->core->conf.clock_tol_us;
}

/* Notes what is known of all clocks now. If m jumps next, our stop must show in them after this moment: what they showed before comes from an earlier stop. */
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

/* A later look may narrow the bounds of a jump, or add to it what is too little to notice as another jump. */
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
	bool guessed = instant_before(c->sent, c->sure); /* m was not asked after a jump or a stop was found: its earlier bounds may be a guess */
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
		/* Several jumps are judged as their sum: the first has ended keys as well. */
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
	members_shorten(ms, m->index, jump);
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

/* What m has shown may come from before our stop. Its next answer, however late, shows more; until then m is not used. */
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
		enum comparison how = i == m->index ? UNLIKE : jump_compare(m, &ms->node[i]);

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
		enum comparison how = i == m->index ? UNLIKE : jump_compare(m, &ms->node[i]);

		if (how == NOT_KNOWN_YET)
			nodeset_add(&asks, i);
		else if (how == LOOK_AGAIN)
			nodeset_add(&asks, m->index);
	}
	return asks;
}

/*
 * Allows for our stop in the open jump of another store: the excess over the stop is that store's own. Bounds from the time when this host stood still may be
 * from before the stop or from after it.
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

/* By then the stop was over: one of the clocks that agree had shown it. */
static struct instant stop_over(const struct members *ms, const struct member *m, const enum comparison *how, struct move stop)
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
 * Allows for the stop in the bounds of a clock that has not shown it yet, or not certainly. A clock that is LIKE may have shown what is too little to notice
 * as a jump. An answer that came too late to decide may have shown a part. A clock that was looked at after the stop and does not show it was set back.
 */
static void clock_allow(const struct member *m, struct member *other, enum comparison how, struct move stop, struct instant over)
{
	bool unseen = instant_before(other->clock.sent, over), vague = how != LIKE && look_may_hide(&other->clock, stop);
	int64_t shown = how == LIKE || !unseen ? jump_shown(m, other, stop.most) : 0;

	if (other->jump.open || !(unseen || vague))
		return;
	other->clock.high += stop.most - shown;
	if (how != LIKE && shown < stop.least)
		other->clock.low += stop.least - shown;
}

/* This open jump is longer than our stop: the store had jumped by itself before, and keys have ended early there. */
static bool jump_is_sum(const struct member *m, struct move stop)
{
	return jump_move(m).least > stop.most + move_slack(stop);
}

/* Closes a jump. rest: what m has not shown of our stop. If that is certainly not 0, m was looked at in the middle of the stop, and the rest will follow. */
static void jump_close(struct members *ms, struct member *m, struct move rest)
{
	m->jump.open = false;
	if (rest.least <= 0)
		return;
	members_shorten(ms, m->index, rest.most);
	m->clock.high += rest.most;
	m->clock.firm = clock_now(&m->clock);
}

void jump_is_none(struct members *ms, struct member *m)
{
	struct move its = jump_move(m);

	jump_close(ms, m, (struct move){-its.most, -its.least});
}

/* The longest of the jumps that are alike: the other stores may have been looked at in the middle of the stop. */
static struct move jump_whole(const struct members *ms, const struct member *m, const enum comparison *how)
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
	enum comparison how[NODES_MAX] = {UNLIKE};
	struct move stop = jump_move(m), whole, elsewhere;
	struct instant over;
	unsigned like = 1;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		how[i] = i == m->index ? LIKE : jump_compare(m, &ms->node[i]);
		like += i != m->index && how[i] == LIKE;
	}
	whole = jump_whole(ms, m, how);
	over = stop_over(ms, m, how, stop);
	stop.most = whole.most;
	elsewhere = (struct move){stop.least - drift_us(stop.most), stop.most + drift_us(stop.most)};
	if (member_may_log(ms, m, false))
		core_log(ms->core, LOG_WARN, "stood-still", "for_ms=%" PRId64 " stores=%u", stop.most / MSEC, like);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *other = &ms->node[i];

		if (!other->jump.open)
			members_shorten(ms, i, stop.most);
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
