/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/service/carry.c and the memory store (memory_pack): two services get the same lines. One of them goes from process to process meanwhile, its
 * store as well. What clients are told must be the same, byte for byte.
 */
#include "daemon/base/rng.h"
#include "daemon/base/segment.h"
#include "tests/fixture/lone_service.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define SESSIONS 6
#define LINES    3000

static struct twin {
	struct lone_service lone;
	struct buf said;
} twin[2];

static void on_sent(void *context, uint64_t session, struct span bytes)
{
	struct twin *t = context;

	buf_printf(&t->said, "%llu: %.*s", (unsigned long long)session, (int)bytes.n, bytes.p);
}

static void setup(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct lone_service *w = &twin[i].lone;

		if (i == 1)
			lone_service_init_in(w, segment_new("test", 11));
		else
			lone_service_init(w);
		w->sent = on_sent;
		w->context = &twin[i];
		lone_service_store(w, true);
		lone_service_settle(w);
		for (uint64_t k = 1; k <= SESSIONS; k++)
			ck_assert_int_eq(lone_service_open(w, k), 0);
	}
}

static void teardown(void)
{
	for (unsigned i = 0; i < 2; i++) {
		lone_service_release(&twin[i].lone);
		buf_release(&twin[i].said);
	}
}

static void both_say(uint64_t session, const char *line)
{
	for (unsigned i = 0; i < 2; i++) {
		char copy[256];
		size_t n = (size_t)snprintf(copy, sizeof(copy), "%s", line);

		lone_service_line(&twin[i].lone, session, copy, n);
	}
}

static void both_are_told_the_same(void)
{
	struct span said[2];

	for (unsigned i = 0; i < 2; i++)
		said[i] = (struct span){buf_begin(&twin[i].said), buf_length(&twin[i].said)};
	ck_assert(span_equal(said[0], said[1]));
	buf_clear(&twin[0].said);
	buf_clear(&twin[1].said);
}

static void on_stray(void *context, const void *at, size_t size, size_t offset, uintptr_t word)
{
	(void)context, (void)at;
	fprintf(stderr, "byte %zu of a block of %zu points to %#lx\n", offset, size, (unsigned long)word);
}

/* All that both share is the addresses. */
static void one_is_carried(void)
{
	ck_assert_uint_eq(lone_service_carry(&twin[1].lone, on_stray), 0);
}

/* A request of any kind, over few names. */
static void line_draw(struct rng *rng, unsigned number, char line[256])
{
	static const struct {
		const char *head, *tail; /* before the number of a name, and behind it */
	} form[] = {
		{"LOCK n", " wait=5s"}, {"LOCK n", ""}, {"LOCK n", " mode=shared wait=3s"}, {"UNLOCK n", ""}, {"EXTEND n", " ttl=20s"}, {"CHECK n", ""},
		{"LOCKALL a", " b c wait=4s"}, {"LOCKANY a", " b wait=2s"}, {"UNLOCK b n", ""}, {"ACQUIRE s", " limit=3 wait=4s"},
		{"ACQUIRE s", " limit=3"}, {"RELEASE s", ""}, {"RATE r", " limit=2 window=5s wait=9s"}, {"DEFER q", " work"}, {"TAKE q", " wait=5s"},
		{"SHOW n", " former=yes"}, {"LIST locks prefix=n", ""}, {"WATCH n", ""}, {"UNWATCH n", ""}, {"COMPLETE n", ""}, {"RECENT prefix=n", ""},
		{"HELLO 1 grace=9s note=", ""}, {"STATS ", ""}, {"CANCEL ", ""}, {"LIST queues prefix=q", ""}, {"nonsense ", ""},
	};
	unsigned which = (unsigned)rng_below(rng, sizeof(form) / sizeof(*form));

	snprintf(line, 256, "@%u %s%u%s", number, form[which].head, (unsigned)rng_below(rng, 3), form[which].tail);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(what_clients_are_told_is_the_same_with_restarts_and_without)
{
	struct rng rng;
	unsigned told = 0;

	rng_init(&rng, (uint64_t[]){seed_pick("service_carry"), 7});
	for (unsigned i = 0; i < LINES; i++) {
		char line[256];
		int64_t later = rng_below(&rng, 10) ? 0 : (int64_t)rng_below(&rng, 3000) * MSEC;

		line_draw(&rng, i, line);
		both_say(1 + rng_below(&rng, SESSIONS), line);
		for (unsigned k = 0; k < 2; k++)
			lone_service_pass(&twin[k].lone, later);
		told += buf_length(&twin[0].said) > 0;
		both_are_told_the_same();
		if (rng_below(&rng, 12) == 0)
			one_is_carried();
	}
	ck_assert_uint_gt(told, LINES / 2);
}

TEST(a_service_does_not_go_on_about_other_stores)
{
	struct lone_service *w = &twin[1].lone;
	struct core_conf other = w->conf;
	const char *why = NULL;

	both_say(1, "LOCK n");
	service_pack(w->service);
	other.set = "another";
	ck_assert(!service_adopt(w->service, &other, &why));
	ck_assert_str_eq(why, "the configuration names other stores, or another max_lease or max_delay");
	other = w->conf;
	other.max_lease_us += SEC;
	ck_assert(!service_adopt(w->service, &other, &why));
	other = w->conf;
	other.label[0] = "elsewhere";
	ck_assert(!service_adopt(w->service, &other, &why));
	ck_assert(service_adopt(w->service, &w->conf, &why));
	both_say(1, "CHECK n");
	both_are_told_the_same();
}

/* What a restart in place may change: all that a reload may. */
TEST(what_may_change_at_run_time_changes_at_once)
{
	struct lone_service *w = &twin[1].lone;
	const char *why = NULL;

	both_say(1, "LOCK n");
	service_pack(w->service);
	w->conf.limits.name = 3;
	w->conf.alarm_held_us = SEC;
	ck_assert(service_adopt(w->service, &w->conf, &why));
	buf_clear(&twin[1].said);
	both_say(1, "LOCK longer");
	ck_assert_ptr_nonnull(memmem(buf_begin(&twin[1].said), buf_length(&twin[1].said), "1: ERR ", 7));
}
