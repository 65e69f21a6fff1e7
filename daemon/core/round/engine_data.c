/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/engine_data.h"

#include <string.h>

void engine_init(struct engine *e, struct core *core)
{
	memset(e, 0, sizeof(*e));
	e->core = core;
	e->rng = &core->rng;
	members_init(&e->members, core);
	lock_table_init(&e->table, core);
	call_table_init(&e->calls, core, &e->members);
	rounds_init(&e->rounds, &e->calls);
	releases_init(&e->releases, &e->calls);
	notices_init(&e->notices, &e->table);
	TAILQ_INIT(&e->no_quorum);
	TAILQ_INIT(&e->risks);
	TAILQ_INIT(&e->adopting);
	TAILQ_INIT(&e->homes.asked);
	for (unsigned i = 0; i < NODES_MAX; i++)
		for (unsigned k = 0; k < HOME_LINES; k++)
			turns_init(&e->homes.waiting[i][k]);
	TAILQ_INIT(&e->homes.told);
	for (unsigned i = 0; i < NODES_MAX; i++)
		e->homes.name[i].at = INSTANT_PAST;
	admission_init(&e->admission);
	e->admission_timer.kind = TIMER_ADMISSION;
	e->back.timer.kind = TIMER_BACK;
}

void engine_release(struct engine *e)
{
	struct timer *t;

	while ((t = heap_first(&e->core->timers)))
		heap_cancel(&e->core->timers, t); /* while the structures that embed them still exist */
	admission_release(&e->admission);
	rounds_release(&e->rounds, &e->table.pendings);
	releases_release(&e->releases, &e->table.pendings);
	call_table_release(&e->calls);
	lock_table_release(&e->table);
	notices_release(&e->notices);
}
