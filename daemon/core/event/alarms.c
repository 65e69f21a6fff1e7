/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/alarms.h"

#include "daemon/base/mem.h"


static bool alarm_is_about(const struct map_node *node, const void *key, size_t n)
{
	(void)n;
	return container_of(node, struct alarm, node)->about == key;
}

static struct alarm *alarm_find(const struct alarms *a, const void *about)
{
	struct map_node *node = map_find(&a->map, siphash_word(a->map.key, (uintptr_t)about), about, 0, alarm_is_about);

	return node ? container_of(node, struct alarm, node) : NULL;
}

static void alarm_end(struct core *c, struct alarm *a)
{
	heap_cancel(&c->timers, &a->timer);
	map_remove(&c->alarms->map, &a->node);
	pool_put(&c->alarms->pool, a);
}

static struct alarm *alarm_new(struct core *c, const void *about)
{
	struct alarm *a = pool_get(&c->alarms->pool);

	a->about = about;
	a->timer.kind = TIMER_ALARM;
	map_insert(&c->alarms->map, &a->node, siphash_word(c->alarms->map.key, (uintptr_t)about));
	return a;
}

int64_t alarms_after_us(const struct core *c, enum alarm_kind kind)
{
	return kind == ALARM_HELD ? c->conf.alarm_held_us : c->conf.alarm_waited_us;
}

void alarms_configure(struct core *c)
{
	if (c->conf.alarm_held_us == 0 && c->conf.alarm_waited_us == 0 && c->conf.alarm_failures == 0) {
		alarms_free(c);
		return;
	}
	if (c->alarms)
		return;
	c->alarms = mem_alloc(sizeof(*c->alarms));
	map_init(&c->alarms->map, c->conf.seed); /* the keys are addresses, which no client chooses */
	pool_init(&c->alarms->pool, sizeof(struct alarm));
	c->alarms->failures.timer.kind = TIMER_FAILURES;
}

void alarms_free(struct core *c)
{
	struct map_node *node;

	if (!c->alarms)
		return;
	while ((node = map_next(&c->alarms->map, NULL)))
		alarm_end(c, container_of(node, struct alarm, node));
	heap_cancel(&c->timers, &c->alarms->failures.timer);
	map_release(&c->alarms->map);
	pool_release(&c->alarms->pool);
	mem_free(c->alarms);
	c->alarms = NULL;
}

void alarms_set(struct core *c, enum alarm_of of, const void *about, enum alarm_kind kind, struct instant since)
{
	struct alarm *a = c->alarms ? alarm_find(c->alarms, about) : NULL;
	int64_t after = alarms_after_us(c, kind);
	struct instant at = instant_add(since, after);

	if (a && a->kind == kind && a->told && after > 0)
		return;
	if (a && after == 0)
		alarm_end(c, a);
	if (after == 0)
		return;
	if (a && of == ALARM_OF_GROUP && timer_is_set(&a->timer))
		at = instant_min(at, a->timer.at); /* it waits for another name now, and asked before */
	a = a ? a : alarm_new(c, about);
	a->of = of;
	a->kind = kind;
	a->told = false;
	heap_set(&c->timers, &a->timer, at);
}

void alarms_drop(struct core *c, const void *about)
{
	struct alarm *a = alarm_find(c->alarms, about);

	if (a)
		alarm_end(c, a);
}

bool alarms_told(const struct core *c, const void *about, enum alarm_kind kind)
{
	const struct alarm *a = c->alarms ? alarm_find(c->alarms, about) : NULL;

	return a && a->told && a->kind == kind;
}
