/* SPDX-License-Identifier: BSD-2-Clause */
/* See rules.h. */
#include "daemon/core/session/client.h"

#include "tests/sim/world/rules.h"

#include <stdlib.h>
#include <string.h>

#define PATTERNS 2
#define ANYBODY  (-1)
#define EVERYTHING (RIGHT_LOCK | RIGHT_LOOK | RIGHT_ADMIN)

static const struct {
	const char *names[PATTERNS]; /* that may not be locked; each has one star at most, at its end or at its beginning */
	bool spares_unix;            /* but by those of the Unix socket */
} sets[] = {
	{{NULL, NULL}, false}, {{"k0", "r1"}, false}, {{"k1", "p*"}, false}, {{"*1", NULL}, false}, {{"k*", "w0"}, true},
	{{"w*", "r0"}, false}, {{"r*", "x*"}, true},  {{"*0", "*2"}, true},  {{"k0", NULL}, true},  {{"p1", "k2"}, false},
};
_Static_assert(sizeof(sets) / sizeof(sets[0]) == RULE_SETS, "all of them");

const struct rules *sim_rules(unsigned set)
{
	static struct rules *made[RULE_SETS];
	struct rules *r = made[set];

	if (r)
		return r;
	r = calloc(1, sizeof(*r) + (2 * PATTERNS + 1) * sizeof(r->rule[0]));
	if (!r)
		abort();
	for (unsigned i = 0; i < PATTERNS && sets[set].names[i]; i++) {
		if (sets[set].spares_unix)
			r->rule[r->count++] = (struct rule){.uid = 1, .group = ANYBODY, .names = sets[set].names[i], .allow = EVERYTHING};
		r->rule[r->count++] = (struct rule){.uid = ANYBODY, .group = ANYBODY, .names = sets[set].names[i], .allow = RIGHT_LOOK | RIGHT_ADMIN};
	}
	r->rule[r->count++] = (struct rule){.uid = ANYBODY, .group = ANYBODY, .allow = EVERYTHING};
	for (unsigned i = 0; i < r->count; i++)
		r->rule[i].line = i + 1;
	return made[set] = r;
}

static bool fits(const char *pattern, struct span name)
{
	size_t n = strlen(pattern);

	if (pattern[0] == '*')
		return name.n >= n - 1 && memcmp(name.p + name.n - (n - 1), pattern + 1, n - 1) == 0;
	if (pattern[n - 1] == '*')
		return name.n >= n - 1 && memcmp(name.p, pattern, n - 1) == 0;
	return name.n == n && memcmp(name.p, pattern, n) == 0;
}

bool sim_rules_deny(unsigned set, bool is_unix, struct span name)
{
	if (sets[set].spares_unix && is_unix)
		return false;
	for (unsigned i = 0; i < PATTERNS && sets[set].names[i]; i++)
		if (fits(sets[set].names[i], name))
			return true;
	return false;
}
