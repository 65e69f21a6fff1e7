/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/tokens.h"

#define NARROW_US SEC
#define CONTENDED_US (5 * SEC) /* how long a contended name is expected to be contended again */

void tokens_expect(struct tokens *t, const struct core *core, const struct name *name)
{
	unsigned place = name->node.hash & (TOKENS_NAMES - 1);

	t->contended[place].hash = name->node.hash;
	t->contended[place].until = instant_add(core->now, CONTENDED_US);
}

static bool tokens_are_expected(const struct tokens *t, const struct core *core, const struct name *name)
{
	unsigned place = name->node.hash & (TOKENS_NAMES - 1);

	return t->contended[place].hash == name->node.hash && instant_before(core->now, t->contended[place].until);
}

int64_t tokens_range(const struct tokens *t, const struct core *core, const struct name *name, unsigned waiting)
{
	int64_t others = waiting > 0 ? (int64_t)waiting - 1 : 0;

	if (instant_before(core->now, t->narrow_until))
		return 0;
	if (others < TOKENS_AHEAD && tokens_are_expected(t, core, name))
		return TOKENS_AHEAD;
	return others > TOKENS_RANGE_MOST ? TOKENS_RANGE_MOST : others;
}

void tokens_be_modest(struct tokens *t, const struct core *core)
{
	t->modest_until = instant_add(core->now, 2 * core->conf.clock_tol_us + NARROW_US);
}

void tokens_be_narrow(struct tokens *t, struct instant now)
{
	t->narrow_until = instant_add(now, NARROW_US);
}

bool tokens_base_is_beyond(const struct members *ms, const struct round *r, int64_t base)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (nodeset_has(r->granted, i) && r->base[i] == base && m->clock.known && base < FENCE_MOST &&
		    base > member_server_ms(m, ms->core->now) * MSEC + members_ahead_us(ms))
			return true;
	}
	return false;
}

bool tokens_base_is_far(const struct members *ms, const struct round *r, int64_t base)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (nodeset_has(r->granted, i) && m->clock.known && base > member_server_ms_least(m, ms->core->now) * MSEC + members_ahead_us(ms))
			return true;
	}
	return false;
}
