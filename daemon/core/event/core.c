/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/core.h"

#include "daemon/base/mem.h"
#include "proto/proto.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The shared context of the service, and the effects of any part: log lines and calls. */

#define HOST_SHOWN 40
#define LOG_MAX 1024
#define BURST_MAX 20

/* The list of effects: grows, never shrinks, and owns whatever its items point to. */

void effects_init(struct effects *e)
{
	memset(e, 0, sizeof(*e));
	arena_init(&e->arena);
}

void effects_release(struct effects *e)
{
	arena_release(&e->arena);
	mem_free(e->item);
	memset(e, 0, sizeof(*e));
}

void effects_reset(struct effects *e)
{
	e->count = 0;
	arena_reset(&e->arena);
}

void effects_grow(struct effects *e)
{
	e->cap = e->cap ? 2 * e->cap : 64;
	e->item = mem_grow(e->item, e->cap, sizeof(*e->item));
}

static void core_note_head(struct core *c, size_t n)
{
	c->daemon_id[n] = '\0';
	c->value_head_n = (uint8_t)(n + 1);
	memcpy(c->value_head + sizeof(c->value_head) - (n + 1), c->daemon_id, n);
	c->value_head[sizeof(c->value_head) - 1] = ':';
}

void core_go_on_as(struct core *c, struct span daemon_id)
{
	memcpy(c->daemon_id, daemon_id.p, daemon_id.n);
	core_note_head(c, daemon_id.n);
}

/* The host's name goes into values, which are split at ':'. */
static void core_name(struct core *c, const char *host)
{
	size_t n = 16;

	rng_hex(&c->rng, c->daemon_id, n);
	c->daemon_id[n++] = '.';
	for (; *host && n < 17 + HOST_SHOWN; host++)
		if (isalnum((unsigned char)*host) || *host == '-' || *host == '.' || *host == '_')
			c->daemon_id[n++] = *host;
	core_note_head(c, n);
}

void core_conf_take_live(struct core_conf *to, const struct core_conf *from)
{
	to->home_lost = from->home_lost;
	to->lease_us = from->lease_us;
	to->users = from->users;
	to->user_names = from->user_names;
	to->rules = from->rules;
	to->name_groups = from->name_groups;
	to->min_lease_us = from->min_lease_us;
	to->max_keep_us = from->max_keep_us;
	to->limits = from->limits;
	to->jobs_keep_us = from->jobs_keep_us;
	to->listed = from->listed;
	to->work = from->work;
	to->serves_all = from->serves_all;
	to->log_moves = from->log_moves;
	to->alarm_held_us = from->alarm_held_us;
	to->alarm_waited_us = from->alarm_waited_us;
	to->alarm_failures = from->alarm_failures;
	to->slow_wait_us = from->slow_wait_us;
	to->slow_hold_us = from->slow_hold_us;
	to->slow_store_us = from->slow_store_us;
}

bool core_conf_alarms_differ(const struct core_conf *a, const struct core_conf *b)
{
	return a->alarm_held_us != b->alarm_held_us ||
	       a->alarm_waited_us != b->alarm_waited_us ||
	       a->alarm_failures != b->alarm_failures ||
	       a->slow_wait_us != b->slow_wait_us ||
	       a->slow_hold_us != b->slow_hold_us ||
	       a->slow_store_us != b->slow_store_us;
}

void core_init(struct core *c, const struct core_conf *conf)
{
	memset(c, 0, sizeof(*c));
	c->conf = *conf;
	rng_init(&c->rng, conf->seed);
	heap_init(&c->timers);
	core_name(c, conf->host);
	core_group_names(c);
}

void core_group_names(struct core *c)
{
	c->name_groups = name_groups_new(c->conf.name_groups, c->name_groups);
}

void core_release(struct core *c)
{
	name_groups_free(c->name_groups);
	heap_release(&c->timers);
}

void core_log(struct core *c, enum log_level level, const char *event, const char *format, ...)
{
	struct effect *effect = effects_add(c->out, EFFECT_LOG);
	char *text = arena_reserve(&c->out->arena, LOG_MAX);
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(text, LOG_MAX, format, list);
	va_end(list);
	if (n < 0)
		n = 0;
	if (n >= LOG_MAX)
		n = LOG_MAX - 1;
	arena_commit(&c->out->arena, (size_t)n + 1);
	effect->log.level = level;
	effect->log.event = event;
	effect->log.text = (struct span){text, (size_t)n};
}

bool core_may_log(struct core *c, enum burst_kind kind)
{
	static const char *const word[] = {[BURST_LOST] = "lost", [BURST_HANGUP] = "hang-up", [BURST_REASSERTED] = "reasserted",
	                                   [BURST_ALARM] = "alarm", [BURST_SLOW] = "slow", [BURST_AUTH] = "auth-failed",
	                                   [BURST_JOB] = "job-failed"};
	struct burst *b = &c->burst[kind];

	if (!instant_before(c->now, b->until)) {
		if (b->left_out > 0)
			core_log(c, LOG_WARN, "left-out", "event=%s lines=%u", word[kind], b->left_out);
		b->until = instant_add(c->now, SEC);
		b->logged = b->left_out = 0;
	}
	if (b->logged < BURST_MAX) {
		b->logged++;
		return true;
	}
	b->left_out++;
	return false;
}

const char *core_quoted(struct core *c, struct span value)
{
	size_t room = 4 * value.n + 3;
	char *text = arena_reserve(&c->out->arena, room);
	size_t n = quote(value, text, room);

	text[n] = '\0';
	arena_commit(&c->out->arena, n + 1);
	return text;
}

void core_keep(char *to, size_t size, struct span from)
{
	size_t n = from.n < size ? from.n : size - 1;

	if (n > 0)
		memmove(to, from.p, n);
	to[n] = '\0';
}

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

	if (a && a->kind == kind && a->reported && after > 0)
		return;
	if (a && after == 0)
		alarm_end(c, a);
	if (after == 0)
		return;
	if (a && of == ALARM_OF_GROUP && timer_is_set(&a->timer))
		at = instant_min(at, a->timer.at); /* it waits for another name now, and asked earlier */
	a = a ? a : alarm_new(c, about);
	a->of = of;
	a->kind = kind;
	a->reported = false;
	heap_set(&c->timers, &a->timer, at);
}

void alarms_drop(struct core *c, const void *about)
{
	struct alarm *a = alarm_find(c->alarms, about);

	if (a)
		alarm_end(c, a);
}

bool alarms_reported(const struct core *c, const void *about, enum alarm_kind kind)
{
	const struct alarm *a = c->alarms ? alarm_find(c->alarms, about) : NULL;

	return a && a->reported && a->kind == kind;
}
