/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits: lua/rate.lua on a real Redis and on a simulated one, and daemon/store/home.c say the same to the same questions. And what they say is held
 * against a plain list of all that was admitted: no window has more than the limit, though the clock is set back; and nobody is refused without need. The
 * clock of Redis stands where the test puts it. REDLOCKD_SEED=n repeats it.
 */
#include "daemon/base/netstring.h"
#include "tests/fixture/random_calls.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>

#define TRIALS   25
#define REQUESTS 400

static struct clocked_redis real;
static struct random_calls t;
static int64_t back_us; /* how far the clock of the servers is behind */

/* What was admitted, by a clock that nobody sets. */
static struct {
	int64_t at, cost;
} admitted[REQUESTS];
static unsigned admissions;

static struct buf words;
static struct answer told; /* by the real server */
static char told_text[64];

static void suite_start(void)
{
	clocked_redis_start(&real, EPOCH_US);
}

static void suite_stop(void)
{
	clocked_redis_stop(&real);
	buf_release(&words);
}

static void begins(uint64_t seed)
{
	random_begin(&t, &real, seed);
	t.now.us = 3600 * SEC;
	back_us = 0;
	admissions = 0;
	*real.frozen_us = random_clock(&t);
}

static void passes(int64_t us)
{
	t.now.us += us;
	*real.frozen_us = random_clock(&t) - back_us;
}

static void keep(void *context, const struct answer *a)
{
	(void)context;
	told = *a;
	ck_assert_uint_lt(a->found.n, sizeof(told_text));
	memcpy(told_text, a->found.p ? a->found.p : "", a->found.n);
	told_text[a->found.n] = '\0';
}

static void same(const char *who, const struct answer *a)
{
	ck_assert_msg(a->class == told.class && a->code == told.code && a->server_us == told.server_us && span_equal(a->found, span_of(told_text)),
	              "%s: class %d code %c '%.*s' at %lld; redis: class %d code %c '%s' at %lld: %.*s", who, a->class, a->code ? a->code : '-',
	              (int)a->found.n, a->found.p ? a->found.p : "", (long long)a->server_us, told.class, told.code ? told.code : '-', told_text,
	              (long long)told.server_us, (int)told.text.n, told.text.p ? told.text.p : "");
}

/* Who asks, and how many bytes all, and this peer, may have. */
static const char *peer = "10.0.0.5";
static int64_t all_most = 1000000000, peer_most;

/* All three are asked, and say the same. Returns the code. */
static char ask(const char *marker, const char *store, const char *name, int64_t limit, int64_t per_us, int64_t cost)
{
	const struct script_sink sink = {NULL, keep};
	struct call c = {.id = 7, .kind = CALL_HOME, .name = span_of(name), .marker = span_of(marker), .ticket = span_of(store)};
	struct answer other;

	buf_clear(&words);
	netstring_put(&words, SPAN("r"));
	netstring_put_int(&words, limit);
	netstring_put_int(&words, per_us);
	netstring_put_int(&words, cost);
	netstring_put(&words, span_of(peer));
	netstring_put_int(&words, all_most);
	netstring_put_int(&words, peer_most);
	c.value = (struct span){buf_begin(&words), buf_length(&words)};
	batch_reset(&t.batch);
	batch_add(&t.batch, &t.keys, &c, 0);
	random_exchange(&t);
	ck_assert_int_eq(script_answer(&t.batch, &t.resp, 0, &sink), 0);
	sim_node_call(t.node, &c, 1, random_clock(&t) - back_us, &other);
	same("model", &other);
	memory_call(t.memory, &c, (struct instant){t.now.us - back_us}, &other);
	same("memory", &other);
	return told.code;
}

static char rate(int64_t limit, int64_t per_us, int64_t cost)
{
	char code = ask("", "one", "n", limit, per_us, cost);

	if (code == 'Y') {
		admitted[admissions].at = t.now.us;
		admitted[admissions++].cost = cost;
	}
	return code;
}

/* Of the text: what is left, and in how many ms it is reset or may be tried again. */
static long long told_left(void)
{
	return atoll(told_text);
}

static long long told_ms(void)
{
	return atoll(strchr(told_text, ' ') + 1);
}

/* What was admitted in the time that ends now. */
static int64_t used(int64_t in_us)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < admissions; i++)
		sum += admitted[i].at > t.now.us - in_us ? admitted[i].cost : 0;
	return sum;
}

FIXTURE(.before_all = suite_start, .after_all = suite_stop, .seconds = 120)

TEST(twenty_in_sixty_seconds_are_admitted_and_the_next_when_the_first_has_left_the_window)
{
	begins(1);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(rate(20, 60 * SEC, 1), 'Y');
		ck_assert_int_eq(told_left(), 19 - i);
		ck_assert_int_eq(told_ms(), 60000);
		passes(SEC);
	}
	ck_assert_int_eq(rate(20, 60 * SEC, 1), 'T');
	ck_assert_int_eq(told_ms(), 40000);
	passes(40 * SEC - 1);
	ck_assert_int_eq(rate(20, 60 * SEC, 1), 'T');
	ck_assert_int_eq(told_ms(), 1);
	passes(1);
	ck_assert_int_eq(rate(20, 60 * SEC, 1), 'Y');
	ck_assert_int_eq(rate(20, 60 * SEC, 1), 'T');
	ck_assert_int_eq(told_ms(), 1000);
	random_end(&t);
}

TEST(what_is_refused_consumes_nothing_and_a_cost_of_0_only_asks)
{
	begins(2);
	ck_assert_int_eq(rate(5, SEC, 0), 'Y');
	ck_assert_str_eq(told_text, "5 0");
	ck_assert_int_eq(rate(5, SEC, 4), 'Y');
	passes(500 * MSEC);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(rate(5, SEC, 2), 'T');
	ck_assert_str_eq(told_text, "1 500");
	ck_assert_int_eq(rate(5, SEC, 1), 'Y');
	ck_assert_int_eq(rate(5, SEC, 0), 'Y');
	ck_assert_str_eq(told_text, "0 1000");
	passes(SEC);
	ck_assert_int_eq(rate(5, SEC, 5), 'Y');
	random_end(&t);
}

TEST(a_clock_that_is_set_back_frees_nothing)
{
	begins(3);
	for (int i = 0; i < 10; i++, passes(SEC))
		ck_assert_int_eq(rate(10, 60 * SEC, 1), 'Y');
	back_us = 3600 * SEC - MSEC;
	passes(0);
	for (int i = 0; i < 59; i++, passes(SEC))
		ck_assert_int_eq(rate(10, 60 * SEC, 1), 'T');
	passes(SEC);
	ck_assert_int_eq(rate(10, 60 * SEC, 10), 'Y');
	random_end(&t);
}

TEST(a_store_answers_no_daemon_that_calls_it_otherwise)
{
	begins(4);
	ck_assert_int_eq(ask("j|other", "one", "n", 1, SEC, 1), 'Q');
	ck_assert_int_eq(ask("", "one", "n", 1, SEC, 1), 'Y');
	ck_assert_int_eq(ask("", "two", "m", 1, SEC, 1), 'N');
	ck_assert_str_eq(told_text, "one");
	ck_assert_int_eq(ask("", "one", "m", 1, SEC, 1), 'Y');
	random_end(&t);
}

TEST(a_store_whose_name_is_empty_has_none)
{
	struct span none = SPAN("");
	const char *key = "redlockd:lock:!home";

	begins(5);
	freeReplyObject(clocked_redis_tell(&real, "SET %s %b", key, none.p, none.n));
	ck_assert_int_eq(ask("", "one", "n", 1, SEC, 1), 'Y');
	ck_assert_int_eq(ask("", "two", "n", 1, SEC, 1), 'N');
	ck_assert_str_eq(told_text, "one");
	random_end(&t);
}

TEST(a_name_with_windows_of_many_lengths_stays_small)
{
	redisReply *length;

	begins(5);
	for (int i = 0; i < 3000; i++) {
		ck_assert_int_eq(ask("", "one", "n", 1000, i == 0 ? 3600 * SEC : 2 * MSEC, 1), 'Y');
		passes(MSEC);
	}
	ck_assert_int_eq(ask("", "one", "n", 3001, 3600 * SEC, 2), 'T');
	ck_assert_int_eq(ask("", "one", "n", 3001, 3600 * SEC, 1), 'Y');
	length = clocked_redis_tell(&real, "STRLEN redlockd:lock:r:n");
	ck_assert_int_lt(length->integer, 40000);
	freeReplyObject(length);
	random_end(&t);
}

/* limit, window and cost of a trial */
struct terms_of_trial {
	int64_t limit, per_us, most;
};

static struct terms_of_trial terms_draw(void)
{
	static const int64_t limits[] = {1, 2, 5, 20, 999, 1000, 1001, 5000}, pers[] = {500, MSEC, 7 * MSEC, SEC, 60 * SEC, 86400 * SEC};
	struct terms_of_trial x = {.limit = limits[rng_below(&t.rng, 8)], .per_us = pers[rng_below(&t.rng, 6)]};

	x.most = random_chance(&t, 30) ? x.limit : 1 + x.limit / 10;
	return x;
}

static int64_t pause_draw(const struct terms_of_trial *x)
{
	if (random_chance(&t, 40))
		return (int64_t)rng_below(&t.rng, 1500);
	if (random_chance(&t, 10) && told.code == 'T')
		return told_ms() * MSEC;
	return (int64_t)rng_below(&t.rng, 2 * (uint64_t)x->per_us * (uint64_t)x->most / (uint64_t)x->limit + 1);
}

TEST(no_window_ever_has_more_than_the_limit_and_nobody_is_refused_without_need)
{
	uint64_t seed = seed_pick("rate");
	unsigned refused = 0, sum = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		struct terms_of_trial x;
		int64_t slack, before = 0;
		bool set_back;

		begins(seed + i);
		x = terms_draw();
		set_back = random_chance(&t, 30);
		slack = x.limit > 1000 && x.per_us > 64 * MSEC ? x.per_us / 64 : MSEC;
		for (unsigned k = 0; k < REQUESTS; k++) {
			int64_t cost = 1 + (int64_t)rng_below(&t.rng, (uint64_t)x.most);
			int64_t more = used(x.per_us + slack);
			char code = rate(x.limit, x.per_us, cost);

			ck_assert_int_le(used(x.per_us), x.limit);
			ck_assert_msg(code == 'Y' || back_us > 0 || more + cost > x.limit, "seed %llu: refused, though %lld of %lld are used",
			              (unsigned long long)seed + i, (long long)more, (long long)x.limit);
			ck_assert_msg(before == 0 || code == 'Y' || cost > before || back_us > 0, "seed %llu: refused after the time that it was told",
			              (unsigned long long)seed + i);
			refused += code == 'T';
			sum++;
			before = 0;
			if (set_back && random_chance(&t, 3))
				back_us += (int64_t)rng_below(&t.rng, 3 * (uint64_t)x.per_us);
			if (code == 'T' && random_chance(&t, 20)) {
				passes(told_ms() * MSEC);
				before = cost;
			} else {
				passes(pause_draw(&x));
			}
		}
		random_end(&t);
	}
	ck_assert_uint_gt(refused, sum / 20);
	printf("rate: %u of %u refused\n", refused, sum);
}

TEST(requests_of_many_terms_for_one_name_are_judged_alike_everywhere)
{
	uint64_t seed = seed_pick("rate terms");
	unsigned code[128] = {0};

	for (unsigned i = 0; i < TRIALS / 4; i++) {
		bool set_back; /* then there is one name: a key that is over may come back if it was not asked for in between, and does at Redis only */

		begins(seed + i);
		set_back = random_chance(&t, 50);
		for (unsigned k = 0; k < REQUESTS; k++) {
			struct terms_of_trial x = terms_draw();

			code[(unsigned char)ask("", "one", set_back || random_chance(&t, 70) ? "n" : "m", x.limit, x.per_us,
			                        (int64_t)rng_below(&t.rng, (uint64_t)x.most + 1))]++;
			if (set_back && random_chance(&t, 3))
				back_us += (int64_t)rng_below(&t.rng, 10 * SEC);
			passes(pause_draw(&x));
		}
		random_end(&t);
	}
	ck_assert(code['Y'] > 0 && code['T'] > 0);
}

TEST(rate_limits_take_no_more_bytes_than_all_and_one_peer_may)
{
	char name[16];
	unsigned n;

	begins(3);
	peer = "a", all_most = 20000, peer_most = 10000;
	for (n = 0; n < 100; n++) {
		snprintf(name, sizeof(name), "n%u", n);
		if (ask("", "one", name, 5, 60 * SEC, 1) == 'B')
			break;
	}
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_lt(n, 100);
	ck_assert_str_eq(told_text, "p");
	for (unsigned i = 0; i < 1000; i++) { /* what is there goes on, and takes no more */
		passes(MSEC);
		ask("", "one", "n0", 1000, 60 * SEC, 1);
	}
	peer = "b";
	for (n = 0; n < 100; n++) {
		snprintf(name, sizeof(name), "m%u", n);
		if (ask("", "one", name, 5, 60 * SEC, 1) == 'B')
			break;
	}
	ck_assert_uint_gt(n, 10);
	ck_assert_int_eq(ask("", "one", "another", 5, 60 * SEC, 1), 'B');
	passes(121 * SEC);
	peer = "a";
	ck_assert_int_eq(ask("", "one", "another", 5, 60 * SEC, 1), 'Y');
	peer = "10.0.0.5", all_most = 1000000000, peer_most = 0;
	random_end(&t);
}
