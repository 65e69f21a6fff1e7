/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/rendezvous.h"

#include "daemon/base/map.h"
#include "daemon/core/event/nodeset.h"

static uint64_t rendezvous_weight(enum home_of of, struct span node, struct span name)
{
	static const uint64_t fixed[2] = {0, 0};
	const uint64_t key[2] = {siphash(fixed, node.p, node.n), of == HOME_OF_RATE ? 1 : 2};

	return siphash(key, name.p, name.n);
}

/* The one of these with the most weight. */
static unsigned heaviest(const uint64_t *weight, unsigned nodes, struct nodeset but)
{
	unsigned first = nodes;

	for (unsigned i = 0; i < nodes; i++)
		if (!nodeset_has(but, i) && (first == nodes || weight[i] > weight[first]))
			first = i;
	return first;
}

unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place)
{
	struct nodeset before = NODESET_NONE;
	uint64_t weight[NODES_MAX];
	unsigned node;

	for (unsigned i = 0; i < core->conf.nodes; i++)
		weight[i] = rendezvous_weight(of, span_of(core_calls(core, i)), name);
	for (node = heaviest(weight, core->conf.nodes, before); place > 0; place--) {
		nodeset_add(&before, node);
		node = heaviest(weight, core->conf.nodes, before);
	}
	return node;
}
