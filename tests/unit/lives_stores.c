/* SPDX-License-Identifier: BSD-2-Clause */
/* The stores of lives_test.c: how they feel, what they do of what they are asked, and that nobody waits for what they say is free. */
#include "tests/unit/lives.h"

#include "tests/unit/stage_part.h"

#include <check.h>

#define LOOKS     5 /* a story's session that nobody else uses looks so often */
#define SETTLE_US (16 * SEC)

void stores_are_well(void)
{
	story("  all stores are well");
	all_feel(MOOD_WELL);
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		if (!stage.node[i].up)
			comes(i);
}

void store_changes(void)
{
	static const enum mood moods[] = {MOOD_SILENT, MOOD_TARDY, MOOD_WELL, MOOD_WELL, MOOD_LOSSY};
	unsigned node = below(stage.conf.nodes), which = below(6);

	if (which == 5) {
		story("  store %u %s", node, stage.node[node].up ? "falls" : "comes");
		(stage.node[node].up ? falls : comes)(node);
		return;
	}
	story("  store %u is in mood %d", node, (int)moods[which]);
	feels(node, moods[which]);
	if (moods[which] == MOOD_WELL && !stage.node[node].up)
		comes(node);
}

void store_breaks(void)
{
	unsigned node = below(stage.conf.nodes);

	if (!stage.node[node].up)
		return;
	story("  store %u breaks", node);
	breaks(node);
	if (one_in(2)) {
		passes(below(300) * MSEC);
		arrives(node);
	}
}

/* A store that is silent does some of what waits there, or its answers are lost. */
void some_are_served(void)
{
	unsigned node = below(stage.conf.nodes), waiting = waiting_at(node), many;

	if (!stage.daemon[0].service || stage.daemon[0].stopped || stage.node[node].mood != MOOD_SILENT || !stage.node[node].up || !waiting)
		return;
	many = 1 + below(waiting);
	story("  %lld ms: store %u serves %u", (long long)(stage.now.us / MSEC), node, many);
	if (one_in(4))
		loses(node, many);
	else
		serves(node, many);
}

/* Whether SHOW tells of a waiter, and of nobody in its way. */
static bool waits_for_nobody(const char *name)
{
	bool waits = false, taken = false, answered = false;
	const char *line;

	says(SESSIONS_MOST + 1, "SHOW %s", name);
	passes(SEC);
	while ((line = next_line(SESSIONS_MOST + 1))) {
		waits |= strstr(line, "role=waiter") != NULL;
		taken |= strstr(line, "role=holder") || strstr(line, "role=kept");
		answered |= *line == 'O';
	}
	ck_assert(answered);
	return waits && !taken;
}

/* Once all has been well for longer than a lease and what may be kept of it. */
void nobody_waits_in_vain(void)
{
	unsigned looks;

	if (!stage.daemon[0].service || lives.copied)
		return;
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		serves_astray(i, 0);
	stores_are_well();
	passes(SETTLE_US);
	for (const char *name = "a"; *name; name = *name == 'a' ? "b" : "") {
		for (looks = 0; looks < LOOKS && waits_for_nobody(name); looks++)
			;
		ck_assert_msg(looks < LOOKS, "somebody waits for %s, which is free", name);
	}
}
