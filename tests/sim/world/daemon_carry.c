/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart in place. In a world in which a daemon is restarted so, each service lives in a segment. Here the segment leaves the process and comes back, as it
 * does in the daemon. Nothing in it may point elsewhere, since nothing else is the same in the next process.
 */
#include "tests/sim/world/world.h"

#include "daemon/base/mem.h"
#include "daemon/base/segment.h"

#include <stdlib.h>
#include <unistd.h>

#define LAYOUT_OF_SIM "sim"

void daemon_lend_memory(struct sim_daemon *d)
{
	if (!plan_carries(d->world->plan))
		return;
	d->conf.segment = segment_new(LAYOUT_OF_SIM, d->index);
	if (!d->conf.segment)
		abort();
	segment_clear_freed(d->conf.segment);
}

/* Effects are memory of the service that has made them. */
static void effects_end(struct sim_daemon *d)
{
	effects_release(&d->effects);
	effects_init(&d->effects);
}

void daemon_take_memory(struct sim_daemon *d)
{
	d->carries = false;
	effects_end(d);
	if (!d->conf.segment)
		return;
	if (segment_live(d->conf.segment) > 0)
		checker_fail(d->world, INVARIANT_S35, -1, "daemon %u: %zu bytes of a service that has ended are not free", d->index,
		             segment_live(d->conf.segment));
	segment_close(d->conf.segment);
	d->conf.segment = NULL;
}

static void on_stray(void *context, const void *at, size_t size, size_t offset, uintptr_t word)
{
	struct sim_daemon *d = context;

	(void)at;
	checker_fail(d->world, INVARIANT_S35, -1, "daemon %u: byte %zu of a block of %zu points out of the segment, to %#lx", d->index, offset, size,
	             (unsigned long)word);
}

void daemon_carry(struct sim_daemon *d)
{
	struct segment *former = d->conf.segment;
	const char *why = "";
	int fd;

	d->carries = false;
	effects_end(d);
	service_pack(d->service);
	segment_strays(former, on_stray, d);
	segment_set_root(former, d->service);
	fd = dup(segment_fd(former));
	segment_close(former);
	d->conf.segment = segment_open(fd, LAYOUT_OF_SIM, &why);
	if (!d->conf.segment || segment_root(d->conf.segment) != d->service)
		abort();
	if (!service_adopt(d->service, &d->conf, &why))
		checker_fail(d->world, INVARIANT_S35, -1, "daemon %u cannot go on: %s", d->index, why);
}
