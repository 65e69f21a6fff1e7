/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells a store's clock that was set forward from a clock of ours that stood still: pure judgement, no calls. */
#include "daemon/core/jump.h"

#include "daemon/core/judge.h"
#include "daemon/core/meet.h"
#include "daemon/core/quorum.h"

#include <inttypes.h>

#define PAST_US SEC /* what is remembered of a clock is that far apart, at least */

/* Of whole seconds: what is less is within JUMP_SLACK_US. */
static int64_t drift_of(int64_t us)
{
	return us / 1000000 * DRIFT_PPM;
}

int64_t jump_measure(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received)
{
	/* It may have been carried out as soon as it was sent, and the clocks may have drifted apart since. */
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

static struct clock_bounds clock_now(const struct member_clock *c)
{
	return (struct clock_bounds){.known = c->known, .low = c->low, .high = c->high, .at = c->at};
}

/*
 * By so much, at least, beyond the drift and what is not noticed; 0: it need not have. What a stop of ours has cost does not come back: somebody has set
 * that clock.
 */
static int64_t clock_went_back(const struct clock_bounds *then, const struct member_clock *c)
{
	int64_t back = then->low - c->high - JUMP_SLACK_US;

	if (!then->known || back <= 0)
		return 0; /* nearly always: each answer comes here, so the drift is not reckoned before */
	back -= drift_us(instant_diff(c->at, then->at));
	return back > 0 ? back : 0;
}

/*
 * Another connection was faster, or a store was slower than those that showed that we stood still: the store carried it out before its clock jumped, or ours
 * stood still. It says nothing of what that has done since. (Where neither was so, the clock was set back.)
 */
static bool look_is_outdated(const struct member_clock *c, int64_t server_us, struct instant sent)
{
	return instant_before(sent, c->sure) && server_us - sent.us < c->low;
}

static int64_t clock_width(const struct clock_bounds *b)
{
	return b->high - b->low;
}

/* What a stop that was allowed for has made vague is remembered no longer than until more is known. */
static void clock_remember(struct member_clock *c, struct clock_bounds bounds, struct instant now)
{
	if (!c->past[0].known || instant_diff(now, c->past[0].at) >= PAST_US) {
		c->past[1] = c->past[0];
		c->past[0] = bounds;
	} else if (c->past[0].wide && clock_width(&bounds) < clock_width(&c->past[0])) {
		bounds.wide = true;
		c->past[0] = bounds;
	}
}

/* It was not looked at for so long, or is known so roughly, that a step beyond the tolerance need not show as a jump. */
static bool step_may_hide(const struct members *ms, const struct clock_bounds *before, struct instant sent)
{
	int64_t hidden = drift_of(instant_diff(ms->core->now, before->at)) + clock_width(before) + instant_diff(ms->core->now, sent);

	return before->known && hidden > JUMP_SLACK_US && hidden + JUMP_SLACK_US > ms->core->conf.clock_tol_us;
}

bool jump_note(struct members *ms, struct member *m, int64_t server_us, struct instant sent)
{
	struct member_clock *c = &m->clock;
	struct clock_bounds before = clock_now(c);
	bool guessed = instant_before(c->sent, c->sure); /* what was known before is what a stop of ours lets expect */
	int64_t jump, back;

	if (before.known && look_is_outdated(c, server_us, sent))
		return false;
	if (before.known)
		clock_remember(c, before, ms->core->now);
	if (!m->clock_is_off && step_may_hide(ms, &before, sent))
		m->met.done = false;
	jump = jump_measure(c, server_us, sent, ms->core->now);
	c->sent = sent;
	back = clock_went_back(&before, c);
	m->jump.undone |= m->jump.open && back > 0;
	if (back > 0 && !guessed)
		meet_note_back(ms, m, back);
	if (!jump)
		return false;
	c->sure = ms->core->now;
	ms->votes_fall_us[m->index] += jump;
	/* Of several jumps the sum is judged: the first has ended keys as well. */
	if (!m->jump.open) {
		m->jump.before = before;
		m->jump.undone = m->jump.allowed = false;
	}
	m->jump.open = true;
	m->jump.seen = ms->core->now;
	m->jump.looked = INSTANT_NEVER;
	return true;
}

/* By how much a clock went ahead of ours since then: at least, at most. */
struct move {
	int64_t least, most;
};

static struct move clock_move(const struct clock_bounds *then, const struct member_clock *c)
{
	int64_t drift = drift_us(instant_diff(c->at, then->at));

	return (struct move){c->low - then->high - drift, c->high - then->low + drift};
}

/* What was known of that clock at the latest moment that is not after `when`; or as early as possible. */
static const struct clock_bounds *clock_then(const struct member_clock *c, struct instant when)
{
	if (c->past[0].known && !instant_before(when, c->past[0].at))
		return &c->past[0];
	return c->past[1].known ? &c->past[1] : &c->past[0];
}

enum likeness { LIKE, UNLIKE, NOT_KNOWN_YET, OUTRUN };

/* What is too little to be noticed may come between the looks at the two. And their clocks drift apart while ours stands still. */
static int64_t move_slack(struct move its)
{
	return JUMP_SLACK_US + drift_us(its.most);
}

/* What is not told apart is not half of it. */
static bool moves_are_alike(struct move its, struct move others)
{
	return 2 * others.least > its.least && others.least <= its.most + move_slack(its) && its.least <= others.most + move_slack(its);
}

/*
 * Both have jumped, and may have at the same moment: what was known just before that says more than what was known a second ago, when busy stores
 * answered late.
 */
static bool jumps_are_alike(const struct member *m, const struct member *other)
{
	bool meet = other->jump.open && instant_before(m->jump.before.at, other->jump.seen) && instant_before(other->jump.before.at, m->jump.seen);

	return meet && moves_are_alike(clock_move(&m->jump.before, &m->clock), clock_move(&other->jump.before, &other->clock));
}

/* Whether another store's clock shows the jump of m. OUTRUN: it shows more, and m was not looked at since. */
static enum likeness jump_likeness(const struct member *m, const struct member *other)
{
	const struct clock_bounds *then = clock_then(&other->clock, m->jump.before.at);
	struct move its = clock_move(&m->jump.before, &m->clock), others = clock_move(then, &other->clock);

	if (!then->known || (other->jump.open && other->jump.undone))
		return UNLIKE;
	if (moves_are_alike(its, others) || jumps_are_alike(m, other))
		return LIKE;
	if (others.least > its.most + move_slack(its) && m->connected && instant_before(m->clock.sent, other->clock.at))
		return OUTRUN;
	return instant_before(other->clock.sent, m->jump.seen) ? NOT_KNOWN_YET : UNLIKE;
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
	if (m->jump.looked.us == INSTANT_NEVER.us && !instant_before(ms->core->now, jump_look_at(ms, m)))
		m->jump.looked = ms->core->now;
}

static bool jump_is_overdue(const struct members *ms, const struct member *m)
{
	return m->jump.looked.us != INSTANT_NEVER.us && !instant_before(ms->core->now, jump_look_at(ms, m));
}

/* It was looked at in the midst of our stop, and shows less of it than the others do. */
static bool jump_is_partial(const struct member *m)
{
	return m->jump.allowed && clock_move(&m->jump.before, &m->clock).most < -JUMP_SLACK_US;
}

/* It has shown our stop in the end, and no more. */
static bool jump_is_none(const struct member *m)
{
	return m->jump.allowed && !jump_is_partial(m) && clock_move(&m->jump.before, &m->clock).least <= JUMP_SLACK_US;
}

enum jump_whose jump_judge(const struct members *ms, const struct member *m)
{
	unsigned nodes = ms->core->conf.nodes, like = 1, open = 0;

	if (m->jump.undone)
		return JUMP_THEIRS;
	if (jump_is_none(m))
		return JUMP_NONE;
	if (jump_is_partial(m))
		return jump_is_overdue(ms, m) ? JUMP_THEIRS : JUMP_OPEN;
	for (unsigned i = 0; i < nodes; i++) {
		enum likeness how = i == m->index ? UNLIKE : jump_likeness(m, &ms->node[i]);

		like += how == LIKE;
		open += how == NOT_KNOWN_YET || how == OUTRUN;
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

	/* Once: what it shows then is all that it shows, unless its timer finds more. */
	if (jump_is_partial(m))
		return instant_before(m->clock.sent, m->clock.sure) ? nodeset_of(m->index) : NODESET_NONE;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		enum likeness how = i == m->index ? UNLIKE : jump_likeness(m, &ms->node[i]);

		if (how == NOT_KNOWN_YET)
			nodeset_add(&asks, i);
		else if (how == OUTRUN)
			nodeset_add(&asks, m->index);
	}
	return asks;
}

/* What was known of that clock before we stood still is so much less than it shows now. What is of the time in between may be of before or after. */
static void clock_allow(const struct member *m, struct member_clock *c, struct move stop)
{
	for (unsigned i = 0; i < 2; i++) {
		struct clock_bounds *past = &c->past[i];

		past->known &= !instant_before(m->jump.before.at, past->at);
		past->low += stop.least;
		past->high += stop.most;
		past->wide = true;
	}
}

/* Where it was seen at another moment of the stop than the others', its jump is what it shows beyond. */
static void jump_allow(const struct member *m, struct member *other, struct move stop)
{
	if (!other->jump.open || !instant_before(other->jump.before.at, m->jump.seen))
		return;
	other->jump.before.low += stop.least;
	other->jump.before.high += stop.most;
	other->jump.allowed = true;
}

/* How much of the stop another store's clock has shown already, although it was looked at before the stop was known. */
static int64_t jump_shown(const struct member *m, const struct member *other, int64_t most)
{
	int64_t shown = clock_move(clock_then(&other->clock, m->jump.before.at), &other->clock).least;

	return shown < 0 ? 0 : shown < most ? shown : most;
}

void jump_is_ours(struct members *ms, struct member *m)
{
	struct move stop = clock_move(&m->jump.before, &m->clock), elsewhere = {stop.least - drift_us(stop.most), stop.most + drift_us(stop.most)};
	enum likeness how[NODES_MAX] = {UNLIKE};
	unsigned like = 1;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		how[i] = i == m->index ? LIKE : jump_likeness(m, &ms->node[i]);
		like += i != m->index && how[i] == LIKE;
	}
	core_log(ms->core, LOG_WARN, "stood-still", "for_ms=%" PRId64 " stores=%u", stop.most / MSEC, like);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *other = &ms->node[i];
		bool unseen = !other->jump.open && instant_before(other->clock.sent, m->jump.seen);

		if (!other->jump.open)
			ms->votes_fall_us[i] += stop.most;
		if (unseen)
			other->clock.high += elsewhere.most - (how[i] == LIKE ? jump_shown(m, other, elsewhere.most) : 0);
		if (unseen && how[i] != LIKE)
			other->clock.low += elsewhere.least; /* else it may have been looked at since, and show what is too little to be noticed */
		if (how[i] == LIKE)
			other->jump.open = false;
		jump_allow(m, other, elsewhere);
		meet_note_stop(other, elsewhere.least);
		other->clock.sure = ms->core->now;
		clock_allow(m, &other->clock, elsewhere);
	}
}

void jump_is_theirs(struct member *m)
{
	m->jump.open = false;
	m->clock.past[0].known = m->clock.past[1].known = false;
}
