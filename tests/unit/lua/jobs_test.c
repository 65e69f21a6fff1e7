/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/lua/jobs.lua, daemon/store/jobs.c: random operations, and the same answers everywhere. REDLOCKD_SEED=n repeats it. */
#include "tests/fixture/jobs_alike.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>

#define TRIALS 5
#define STEPS  1200
#define KEEP_MS INT64_C(604800000)

static const struct span queues[] = {{"mail", 4}, {"two words", 9}, {"\0:\n", 3}};

static void put_pick(struct buf *words, const char *prefix, unsigned most)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%u", prefix, (unsigned)rng_below(&alike.calls.rng, most));
	netstring_put(words, span_of(text));
}

static void put_number(struct buf *words, int64_t most)
{
	netstring_put_int(words, (int64_t)rng_below(&alike.calls.rng, (uint64_t)most));
}

static void defer_draw(struct buf *words)
{
	netstring_put(words, SPAN("defer"));
	put_pick(words, "id", 12);
	netstring_put(words, random_chance(&alike.calls, 50) ? SPAN("a \0 payload") : SPAN(""));
	if (random_chance(&alike.calls, 60))
		put_pick(words, "lock", 3);
	else
		netstring_put(words, SPAN(""));
	put_number(words, random_chance(&alike.calls, 50) ? 1 : 200);
	netstring_put_int(words, random_chance(&alike.calls, 90) ? 10 : 3);
	put_pick(words, "nonce", random_chance(&alike.calls, 30) ? 20 : 1000000);
	netstring_put_int(words, random_chance(&alike.calls, 30) ? 0 : random_clock(&alike.calls) / 1000 + (int64_t)rng_below(&alike.calls.rng, 400) - 20);
	put_pick(words, "peer", 3);
	netstring_put_int(words, random_chance(&alike.calls, 90) ? 1000000 : 20000);
	netstring_put_int(words, random_chance(&alike.calls, 80) ? 0 : 6000);
	netstring_put_int(words, KEEP_MS);
}

static void take_draw(struct buf *words)
{
	netstring_put(words, SPAN("take"));
	put_pick(words, "v", 1000000);
	netstring_put_int(words, random_chance(&alike.calls, 50) ? 50 : 3000);
	netstring_put_int(words, 3);
	netstring_put_int(words, random_chance(&alike.calls, 95) ? 0 : random_clock(&alike.calls) / 1000 - 1);
	put_pick(words, "d", 3);
	netstring_put_int(words, random_chance(&alike.calls, 50) ? 0 : 3000);
	put_number(words, 2);
	netstring_put_int(words, random_chance(&alike.calls, 70) ? 0 : random_clock(&alike.calls) / 1000 - (int64_t)rng_below(&alike.calls.rng, 300));
	if (random_chance(&alike.calls, 70))
		netstring_put(words, SPAN(""));
	else
		put_pick(words, "id", 12);
	netstring_put_int(words, KEEP_MS);
	for (unsigned n = (unsigned)rng_below(&alike.calls.rng, 3); n > 0; n--)
		put_pick(words, "lock", 3);
}

/* Of the last lease, mostly. */
static void value_put(struct buf *words, const char *value)
{
	netstring_put(words, random_chance(&alike.calls, 80) ? span_of(value) : SPAN("v0"));
}

static void lease_draw(struct buf *words, const char *value)
{
	switch (rng_below(&alike.calls.rng, 7)) {
	case 0:
		netstring_put(words, SPAN("renew"));
		value_put(words, value);
		put_number(words, 4000);
		break;
	case 1:
		netstring_put(words, SPAN("done"));
		value_put(words, value);
		break;
	case 2:
		netstring_put(words, SPAN("retry"));
		value_put(words, value);
		put_number(words, 100);
		netstring_put_int(words, 3);
		break;
	case 3:
		netstring_put(words, SPAN("back"));
		value_put(words, value);
		put_number(words, 2);
		break;
	case 4:
		netstring_put(words, SPAN("payload"));
		value_put(words, value);
		break;
	case 5:
		netstring_put(words, SPAN("revive"));
		put_pick(words, "id", 12);
		put_number(words, random_chance(&alike.calls, 50) ? 1 : 50);
		break;
	default:
		netstring_put(words, SPAN("drop"));
		put_pick(words, "id", 12);
		break;
	}
}

static void other_draw(struct buf *words)
{
	switch (rng_below(&alike.calls.rng, 3)) {
	case 0:
		netstring_put(words, SPAN("list"));
		put_number(words, random_chance(&alike.calls, 50) ? 1 : 12);
		netstring_put_int(words, KEEP_MS);
		break;
	case 1:
		netstring_put(words, SPAN("queues"));
		put_number(words, 2);
		break;
	default:
		netstring_put(words, SPAN("leave"));
		put_pick(words, "d", 3);
		break;
	}
}

FIXTURE(.before_all = alike_start, .after_all = alike_stop, .seconds = 120)

TEST(memory_and_model_answer_what_the_script_on_a_real_redis_does)
{
	uint64_t seed = seed_pick("jobs");

	for (unsigned i = 0; i < TRIALS; i++) {
		char value[64] = "v0";

		random_begin(&alike.calls, &alike.real, seed + i);
		for (unsigned k = 0; k < STEPS; k++) {
			struct buf words = {0};
			struct span rest, word;
			unsigned what = (unsigned)rng_below(&alike.calls.rng, 100);

			if (random_chance(&alike.calls, 30))
				alike_pass_ms((int64_t)rng_below(&alike.calls.rng, 40));
			netstring_put(&words, SPAN("j"));
			if (what < 35)
				defer_draw(&words);
			else if (what < 65)
				take_draw(&words);
			else if (what < 90)
				lease_draw(&words, value);
			else
				other_draw(&words);
			rest = (struct span){buf_begin(&words), buf_length(&words)};
			if (alike_run(queues[rng_below(&alike.calls.rng, 3)], &words) == 'J') {
				for (unsigned w = 0; w < 3; w++)
					ck_assert(netstring_next(&rest, &word));
				snprintf(value, sizeof(value), "%.*s", (int)word.n, word.p);
			}
			buf_release(&words);
		}
		random_end(&alike.calls);
	}
	for (const char *c = "DFBJWLKPRMTH"; *c; c++)
		ck_assert_msg(alike.seen[(unsigned char)*c] > 0, "no operation was answered %c", *c);
}
