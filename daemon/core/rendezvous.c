/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/rendezvous.h"

#include "daemon/base/map.h"
#include "daemon/core/nodeset.h"

static uint64_t rendezvous_weight(enum home_of of, struct span node, struct span name)
{
	static const uint64_t fixed[2] = {0, 0};
	const uint64_t key[2] = {siphash(fixed, node.p, node.n), of == HOME_OF_RATE ? 1 : 2};

	return siphash(key, name.p, name.n);
}

unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place)
{
	struct nodeset before = NODESET_NONE;
	unsigned first = 0;

	for (unsigned k = 0; k <= place; k++) {
		uint64_t most = 0;
		bool found = false;

		for (unsigned i = 0; i < core->conf.nodes; i++) {
			uint64_t weight = rendezvous_weight(of, span_of(core_calls(core, i)), name);

			if (nodeset_has(before, i) || (found && weight <= most))
				continue;
			found = true;
			most = weight;
			first = i;
		}
		nodeset_add(&before, first);
	}
	return first;
}
