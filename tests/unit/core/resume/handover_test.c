/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/resume/handover.c and restore.c: two services get the same lines. One of them hands over to another service meanwhile, again and again, by
 * records. What clients are told must be the same, byte for byte.
 */
#include "daemon/base/rng.h"
#include "tests/fixture/lone_service.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSIONS 6
#define LINES    3000

static struct twin {
	struct lone_service lone;
	struct buf said;
} twin[2];

/*
 * Whether a waiter gets the lease as it stands or a new one, and how many tokens a round reserves, depends on what was contended before. A restart renews some
 * leases. The number of a job tells the run. Of waits that end in one moment either may be the first, and the other is still counted.
 */
static void said_add(struct buf *said, struct span bytes)
{
	static const char *const field[] = {" fence=", " valid_ms=", " job=", " retry_ms=", " next_ms=", " waiters="};

	while (bytes.n > 0) {
		size_t n = 1;

		buf_append(said, bytes.p, 1);
		for (unsigned i = 0; i < sizeof(field) / sizeof(field[0]); i++)
			if (span_starts(bytes, span_of(field[i]))) {
				buf_append(said, field[i] + 1, strlen(field[i]) - 1);
				for (n = strlen(field[i]); n < bytes.n && bytes.p[n] > ' '; n++)
					;
			}
		bytes = (struct span){bytes.p + n, bytes.n - n};
	}
}

static void on_sent(void *context, uint64_t session, struct span bytes)
{
	struct twin *t = context;

	buf_printf(&t->said, "%llu: ", (unsigned long long)session);
	said_add(&t->said, bytes);
}

static void setup(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct lone_service *w = &twin[i].lone;

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

/* So all secrets are drawn before the random numbers of the two part. */
static void all_say_hello(void)
{
	for (uint64_t k = 1; k <= SESSIONS; k++)
		both_say(k, "HELLO 1");
}

static int line_compare(const void *a, const void *b)
{
	const struct span *one = a, *other = b;
	int order = memcmp(one->p, other->p, one->n < other->n ? one->n : other->n);

	return order ? order : (one->n > other->n) - (one->n < other->n);
}

/* In which order those are told who watch, or hold a lock together, is not handed over. */
static void lines_sort(struct buf *said)
{
	static struct span line[4096];
	struct buf sorted = {0};
	size_t n = 0, length;

	for (size_t from = 0; from < buf_length(said); from += length) {
		const char *at = buf_begin(said) + from;

		length = (size_t)((const char *)memchr(at, '\n', buf_length(said) - from) - at) + 1;
		ck_assert_uint_lt(n, 4096);
		line[n++] = (struct span){at, length};
	}
	qsort(line, n, sizeof(*line), line_compare);
	for (size_t i = 0; i < n; i++)
		buf_append(&sorted, line[i].p, line[i].n);
	buf_release(said);
	*said = sorted;
}

static void both_are_told_the_same(const char *behind)
{
	struct span said[2];

	for (unsigned i = 0; i < 2; i++) {
		lines_sort(&twin[i].said);
		said[i] = (struct span){buf_begin(&twin[i].said), buf_length(&twin[i].said)};
	}
	ck_assert_msg(span_equal(said[0], said[1]), "behind %s\n-- without:\n%.*s-- with:\n%.*s", behind, (int)said[0].n, said[0].p, (int)said[1].n,
	              said[1].p);
	buf_clear(&twin[0].said);
	buf_clear(&twin[1].said);
}

/* A circle that opens by a grant is found when its owners have waited for a while, or when they ask again, as in a restart: then it ends for both. */
static void circles_end(void)
{
	struct buf others = {0}, said = twin[0].said;
	size_t length;

	for (size_t from = 0; from < buf_length(&twin[1].said); from += length) {
		const char *at = buf_begin(&twin[1].said) + from;
		unsigned long long session;
		unsigned tag;
		char line[32];

		length = (size_t)((const char *)memchr(at, '\n', buf_length(&twin[1].said) - from) - at) + 1;
		if (!memmem(at, length, " ERR DEADLOCK ", 14)) {
			buf_append(&others, at, length);
			continue;
		}
		ck_assert_int_eq(sscanf(at, "%llu: @%u ", &session, &tag), 2);
		snprintf(line, sizeof(line), "CANCEL @%u", tag);
		twin[0].said = (struct buf){0};
		lone_service_line(&twin[0].lone, session, line, strlen(line));
		ck_assert_msg(span_starts((struct span){buf_begin(&twin[0].said) + 3, 2}, SPAN("OK")), "no such request waits: %.*s", (int)length, at);
		buf_release(&twin[0].said);
		twin[0].said = said;
	}
	buf_release(&twin[1].said);
	twin[1].said = others;
}

static void one_is_restarted(void)
{
	ck_assert(lone_service_hand_over(&twin[1].lone));
	lone_service_pass(&twin[1].lone, MSEC); /* waits that have ended meanwhile */
	lone_service_pass(&twin[0].lone, instant_diff(twin[1].lone.now, twin[0].lone.now));
	circles_end();
}

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* A request of any kind, over few names. For which of its names a LOCKALL waits is not handed over. */
static void line_draw(struct rng *rng, unsigned number, char line[256])
{
	static const struct {
		const char *head, *tail; /* before the number of a name, and behind it */
	} form[] = {
		{"LOCK n", " wait=5s"}, {"LOCK n", " wait=6s count=1 note=\"so what\" trace=" TRACE}, {"LOCK n", ""}, {"LOCK n", " mode=shared wait=3s"},
		{"UNLOCK n", ""}, {"EXTEND n", " ttl=20s"}, {"CHECK n", ""}, {"LOCKALL a", " b c"}, {"LOCKALL a", " wait=4s trace=" TRACE},
		{"LOCKANY a", " b wait=2s"}, {"UNLOCK b n", ""}, {"ACQUIRE s", " limit=1 wait=4s trace=" TRACE}, {"ACQUIRE s", " limit=1"},
		{"RELEASE s", ""}, {"RATE r", " limit=2 per=5s wait=9s"}, {"DEFER q", " work"},
		{"TAKE q", " wait=5s"}, {"SHOW n", ""}, {"LIST locks prefix=n", ""}, {"WATCH n", ""}, {"UNWATCH n", ""}, {"HELLO 1 grace=9s name=", ""},
		{"CANCEL @", ""}, {"LIST queues prefix=q", ""}, {"nonsense ", ""}, {"SUBSCRIBE ", ""},
	};
	unsigned which = (unsigned)rng_below(rng, sizeof(form) / sizeof(*form));

	snprintf(line, 256, "@%u %s%u%s", number, form[which].head, (unsigned)rng_below(rng, 3), form[which].tail);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(what_clients_are_told_is_the_same_whether_or_not_a_service_hands_over)
{
	struct rng rng;
	unsigned told = 0;

	rng_init(&rng, (uint64_t[]){seed_pick("handover"), 7});
	all_say_hello();
	for (unsigned i = 0; i < LINES; i++) {
		char line[256];
		int64_t later = rng_below(&rng, 10) ? MSEC : (int64_t)(1 + rng_below(&rng, 3000)) * MSEC;

		line_draw(&rng, i, line);
		both_say(1 + rng_below(&rng, SESSIONS), line);
		for (unsigned k = 0; k < 2; k++)
			lone_service_pass(&twin[k].lone, later);
		told += buf_length(&twin[0].said) > 0;
		both_are_told_the_same(line);
		if (rng_below(&rng, 12) == 0) {
			one_is_restarted();
			both_are_told_the_same("a restart");
		}
	}
	ck_assert_uint_gt(told, LINES / 2);
}
