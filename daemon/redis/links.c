/* SPDX-License-Identifier: BSD-2-Clause */
/* Does the same to each link. */
#include "daemon/redis/links.h"
#include "daemon/base/mem.h"

#include <stdlib.h>
#include <string.h>

void links_init(struct links *l, unsigned count, struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink)
{
	l->item = mem_alloc(count * sizeof(struct link *));
	for (l->count = 0; l->count < count; l->count++)
		l->item[l->count] = link_new(base, conf, node, sink);
}

void links_release(struct links *l)
{
	for (unsigned i = 0; i < l->count; i++)
		link_free(l->item[i]);
	free(l->item);
}

void links_expect(struct links *l, const char *name)
{
	for (unsigned i = 0; i < l->count; i++)
		link_expect(l->item[i], name);
}

void links_demand_master(struct links *l)
{
	for (unsigned i = 0; i < l->count; i++)
		link_demand_master(l->item[i]);
}

int links_dial(struct links *l, const struct endpoint *to)
{
	int r = 0;

	for (unsigned i = 0; i < l->count && r == 0; i++)
		r = link_dial(l->item[i], (const struct sockaddr *)&to->name, to->n);
	return r;
}

bool links_agree(const struct links *l)
{
	bool agree = true;

	for (unsigned i = 1; i < l->count; i++)
		agree &= !strcmp(link_run_id(l->item[i]), link_run_id(l->item[0]));
	return agree;
}

void links_close(struct links *l, const char *reason)
{
	for (unsigned i = 0; i < l->count; i++)
		link_close(l->item[i], reason);
}

bool links_flush(struct links *l, struct instant now, bool at_once)
{
	bool again = false;

	for (unsigned i = 0; i < l->count; i++)
		again |= link_flush(l->item[i], now, at_once);
	return again;
}

bool links_wait(const struct links *l)
{
	bool waits = false;

	for (unsigned i = 0; i < l->count; i++)
		waits |= link_waits(l->item[i]);
	return waits;
}

struct instant links_answered(const struct links *l)
{
	struct instant last = link_answered(l->item[0]);

	for (unsigned i = 1; i < l->count; i++)
		last = instant_max(last, link_answered(l->item[i]));
	return last;
}
