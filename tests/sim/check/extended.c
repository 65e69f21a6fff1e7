/* SPDX-License-Identifier: BSD-2-Clause */
/* An EXTEND renews no key that UNLOCK or a lock-delay left behind, however late it arrives (S11), and is not denied where its value stands (L10). */
#include "tests/sim/world/world.h"

static void left_behind_check(struct server *s, const struct call *call, int64_t name)
{
	uint64_t value = hash_bytes(call->new_value.p, call->new_value.n);

	if (call->exact)
		s->left_behind[name] = value;
	else if (s->left_behind[name] == value)
		checker_fail(s->world, INVARIANT_S11, name, "%s: node %u extends a key that was left behind", name_of(name), s->index);
}

static void denial_check(struct server *s, const struct call *call, int64_t name)
{
	struct span value;
	int64_t expires;

	if (sim_node_get(s->node, call->name, server_wall(s), &value, &expires) && span_equal(value, call->value))
		checker_fail(s->world, INVARIANT_L10, name, "%s: node %u denies the value that stands there", name_of(name), s->index);
}

void extended_ran(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	int64_t name = name_number(call->name);
	char code = f->answer[i].code;

	if (name < 0 || call->kind != CALL_EXTEND)
		return;
	if (code == 'E')
		left_behind_check(s, call, name);
	else if (code == 'B' || code == 'M')
		denial_check(s, call, name);
}
