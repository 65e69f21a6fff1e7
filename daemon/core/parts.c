/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/parts.h"

#include <string.h>

void engine_init(struct engine *e, struct core *core)
{
	memset(e, 0, sizeof(*e));
	e->core = core;
	e->rng = &core->rng;
	members_init(&e->members, core);
	lock_table_init(&e->table, core);
	op_table_init(&e->ops, core, &e->members);
	notices_init(&e->notices, &e->table);
	TAILQ_INIT(&e->no_quorum);
	TAILQ_INIT(&e->risks);
	TAILQ_INIT(&e->adopting);
	admission_init(&e->admission);
	e->admission_timer.kind = TIMER_ADMISSION;
	TAILQ_INIT(&e->releases);
}

void engine_release(struct engine *e)
{
	struct timer *t;

	while ((t = heap_first(&e->core->timers)))
		heap_cancel(&e->core->timers, t); /* while what they are embedded in still exists */
	for (uint32_t i = 0; i < e->ops.slots; i++)
		if (e->ops.slot[i] && e->ops.slot[i]->pending)
			pool_put(&e->table.pendings, e->ops.slot[i]->pending);
	admission_release(&e->admission);
	op_table_release(&e->ops);
	lock_table_release(&e->table);
	notices_release(&e->notices);
}
