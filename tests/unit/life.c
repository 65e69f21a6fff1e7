/* SPDX-License-Identifier: BSD-2-Clause */
/* What daemon.c does with the state file and the memory store, in its order. */
#include "tests/unit/life.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SKEW (60 * SEC)

struct here here;

void folder_start(void)
{
	strcpy(here.dir, "/tmp/state.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(here.dir));
	snprintf(here.path, sizeof(here.path), "%s/state", here.dir);
	here.now = (struct instant){1000 * SEC};
	here.wall_us = WALL;
	here.remote = false;
	here.lease_us = here.guard_us = 0;
}

void folder_stop(void)
{
	chmod(here.dir, 0700);
	if (unlink(here.path) < 0)
		rmdir(here.path);
	ck_assert_int_eq(rmdir(here.dir), 0); /* nothing else was left behind */
}

static void store_call(struct life *l, struct call c, struct answer *ret_answer)
{
	c.marker = memory_marker(l->memory);
	memory_call(l->memory, &c, here.now, ret_answer);
}

char life_acquire(struct life *l, struct span name, int64_t px)
{
	struct answer a;

	store_call(l, (struct call){.kind = CALL_ACQUIRE, .name = name, .value = span_of(l->value), .px_ms = px}, &a);
	return a.code;
}

char life_adopt(struct life *l, struct span name, const char *value, int64_t px)
{
	struct answer a;

	store_call(l, (struct call){.kind = CALL_EXTEND, .name = name, .value = span_of(value), .new_value = span_of(l->value), .px_ms = px}, &a);
	return a.code;
}

int64_t life_grant(struct life *l)
{
	struct answer a;

	store_call(l, (struct call){.kind = CALL_ACQUIRE, .name = SPAN("fence"), .value = span_of(l->value), .px_ms = 1}, &a);
	ck_assert_int_eq(a.code, 'G');
	return a.fence;
}

void life_join(struct life *l)
{
	struct answer a;

	store_call(l, (struct call){.kind = CALL_JOIN, .new_marker = SPAN("j|cfg")}, &a);
	ck_assert_int_eq(a.code, 'J');
}

void life_open(struct life *l, const char *boot)
{
	const struct state_conf conf = {
		.dir = here.dir, .boot_id = boot, .remote = here.remote, .lease_us = here.lease_us, .guard_us = here.guard_us, .now = here.now, .began = here.began,
		.wall_us = here.now.us + here.wall_us};
	struct memory_conf memory = {.skew_us = SKEW, .run_id = "run"};
	static unsigned lives;

	ck_assert_int_eq(state_open(&l->state, &conf, &l->found, &l->why), 0);
	memory.epoch_us = l->state.epoch_us;
	l->memory = memory_new(&memory);
	state_restore(&l->state, l->memory);
	snprintf(l->value, sizeof(l->value), "d%u:7:00ff", ++lives);
}

void life_begin(struct life *l, const char *boot)
{
	life_open(l, boot);
	ck_assert_int_eq(state_mark(&l->state, l->memory, here.now), 0);
	if (l->found != STATE_CRASH)
		life_join(l);
}

void life_crash(struct life *l)
{
	memory_free(l->memory);
	state_close(&l->state);
}

void life_end(struct life *l)
{
	ck_assert_int_eq(state_finish(&l->state, l->memory, here.now), 0);
	life_crash(l);
}

enum state_found next_finds(const char *boot)
{
	struct life l;

	life_open(&l, boot);
	life_crash(&l);
	return l.found;
}
