/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/redis/lua on keys that somebody else has written to, while the clock of the server goes forward and back. A real Redis and the simulated one
 * say the same. Whatever stands there: a script fails before it has written anything, no fence falls, a grant stands as it was told, and a free lock is
 * kept for nobody longer than a grace. REDLOCKD_SEED=n repeats it.
 */
#include "daemon/base/rng.h"
#include "daemon/redis/script.h"
#include "tests/fixture/redis_pair.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW       INT64_C(1700000000123456)
#define ROUNDS    3000 /* and more, up to six times as many, until each answer was met */
#define CALLS_MAX 4
#define WORDS_MAX (6 + 2 * CALLS_MAX + 2 + 16 * CALLS_MAX)
#define NAMES     3
#define RESERVE_MS  20
#define CROWD     8000 /* Lua's unpack gives no more */

static struct redis_pair pair;
static struct rng rng;
static struct script_keys keys;
static struct batch batch;
static struct resp resp;
static struct call call[CALLS_MAX];
static char ticket[CALLS_MAX][64];
static struct answer told[CALLS_MAX];
static unsigned calls, tolds;
static unsigned met[CALL_BREAK + 1][128], errors, kept, unqueued;

static const char *const lock_key[NAMES] = {"lock:a", "lock:\xff:\n", "lock:q:a"};
static const char *const queue_key[NAMES] = {"redlockd:lock:q:a", "redlockd:lock:q:\xff:\n", "redlockd:lock:q:q:a"};
static const char *const common_key[] = {"redlockd:lock:!meta", "redlockd:lock:!fence", "redlockd:lock:!waits"};
static const char *const values[] = {"d1.h:1:0af", "d1.h:2:ff00", "d2.h:1:abcdef"};

/* What somebody does to a key. The letter names the key, the rest is the command: @ is the key, # a moment in ms, _ a blank in a word. */
static const char *const spoils[] = {
	"lDEL @",      "lSET @ x",         "lSET @ d1.h:1:0af", "lSET @ d1.h:2:ff00 PX 70", "lSET @ \xff.\n:b:aa", "lHSET @ f 1",  "lPERSIST @",
	"lPEXPIRE @ 1", "lSET @ R_0009700000000000,d1.h:1:0af", "lSET @ !R_0009700000000000,d1.h:2:ff00_0009700000000001,d2.h:1:abcdef PX 9000",
	"lSET @ R_0009700000000000,d1.h:1:0af_", "lSET @ R", "lSET @ R_1,d1.h:1:0af", "lSET @ R_0001600000000000,d1.h:1:0af",
	"qDEL @",      "qSET @ x",         "qPERSIST @",        "qPEXPIRE @ 1",             "qZADD @ # ~",          "qZADD @ # 0",
	"qZADD @ # ", "qZADD @ # zz:\xff",
	"qZADD @ inf 0", "qZADD @ -inf 0", "qZADD @ # ~~x",     "qZADD @ 1e300 0000000000000001:d9:1",              "qZADD @ # 0000000000000002:d9:1",
	"fDEL @",      "fSET @ ",          "fSET @ text",       "fSET @ 0x10",              "fSET @ 12.5",          "fSET @ nan",   "fSET @ inf",  "fSET @ -5",
	"fSET @ 9007199254740993000",      "fDEL @",            "mDEL @",                   "mSET @ j|two",         "mHSET @ f 1",
};

#define PICK(list) (list)[rng_below(&rng, sizeof(list) / sizeof((list)[0]))]

static bool chance(unsigned percent)
{
	return rng_below(&rng, 100) < percent;
}

static void suite_start(void)
{
	redis_pair_start(&pair, NOW);
	script_keys_init(&keys, "lock:", 60 * SEC, 0, "");
	batch_init(&batch);
	resp_init(&resp);
}

static void suite_stop(void)
{
	redis_pair_stop(&pair);
	script_keys_release(&keys);
	batch_release(&batch);
	resp_release(&resp);
}

static void tell(const char *a, const char *b, const char *c)
{
	struct span word[] = {span_of(a), span_of(b), span_of(c ? c : "")};

	redis_pair_command(&pair, word, c ? 3 : 2);
}

/* Looks at each key, so that expired keys are gone from both. */
static void all_are_met(void)
{
	for (unsigned i = 0; i < NAMES; i++) {
		tell("EXISTS", lock_key[i], NULL);
		tell("EXISTS", queue_key[i], NULL);
	}
}

static void time_passes(void)
{
	static const int64_t steps[] = {1000, 19999, 20000, 20001, 70000, 3 * SEC, 70 * SEC, -SEC, -30 * SEC, -3600 * SEC};
	int64_t step = chance(80) ? (int64_t)rng_below(&rng, 30000) : PICK(steps);

	all_are_met();
	redis_pair_clock(&pair, pair.now_us + step);
	all_are_met();
}

static struct span blanks_put(struct span word, char *text)
{
	for (size_t i = 0; i < word.n; i++)
		text[i] = word.p[i] == '_' ? ' ' : word.p[i];
	return (struct span){text, word.n};
}

static void is_spoilt(void)
{
	const char *spoil = PICK(spoils), *key, *end;
	char text[8 * 64];
	unsigned name = (unsigned)rng_below(&rng, NAMES);
	struct span word[8];
	char moment[24];
	size_t n = 0;

	key = *spoil == 'l' ? lock_key[name] : *spoil == 'q' ? queue_key[name] : common_key[*spoil == 'f'];
	snprintf(moment, sizeof(moment), "%lld", (long long)(pair.now_us / 1000 + (int64_t)rng_below(&rng, 65000) - 1000));
	for (spoil++; n < 8; spoil = end + 1) {
		end = strchrnul(spoil, ' ');
		word[n++] = *spoil == '@' ? span_of(key) : *spoil == '#' ? span_of(moment) : (struct span){spoil, (size_t)(end - spoil)};
		word[n - 1] = blanks_put(word[n - 1], text + (n - 1) * 64);
		if (!*end)
			break;
	}
	if (span_equal(word[0], SPAN("SET")) && *key == 'r')
		tell("DEL", key, NULL);
	redis_pair_command(&pair, word, n);
}

static void is_mended(void)
{
	char fence[24];

	snprintf(fence, sizeof(fence), "%lld", (long long)pair.now_us);
	tell("SET", common_key[0], "j|one");
	tell("SET", common_key[1], fence);
}

static struct span ticket_draw(void)
{
	static const char *const kinds[] = {"", "", ":s", ":s1699999999000000", ":u"};
	char *text = ticket[calls];

	if (chance(30))
		return SPAN("");
	snprintf(text, sizeof(ticket[0]), "%016lld:d%u.h:1%s", (long long)(pair.now_us + (int64_t)rng_below(&rng, 3 * SEC)) - 3 * SEC,
	         (unsigned)rng_below(&rng, 3), PICK(kinds));
	return span_of(text);
}

static struct call call_draw(void)
{
	static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_ACQUIRE, CALL_ACQUIRE, CALL_EXTEND, CALL_EXTEND, CALL_RELEASE,
					       CALL_RELEASE, CALL_WITHDRAW, CALL_LOOK, CALL_BREAK};
	static const char *const what[] = {"", "d1.h:1", "d1.h:2", "d2.h:1", "#1:x", "+"};
	const int64_t fences[] = {0, pair.now_us, pair.now_us + 60 * SEC, pair.now_us + 61 * SEC};
	struct call c = {
		.id = calls,
		.kind = PICK(kinds),
		.name = span_of(lock_key[rng_below(&rng, NAMES)] + 5),
		.value = span_of(PICK(values)),
		.marker = SPAN("j|one"),
		.px_ms = chance(5) ? (int64_t)rng_below(&rng, 3) - 1 : chance(50) ? 50 : 30000,
		.fence = PICK(fences),
		.range = chance(80) ? 0 : 5,
		.create = chance(30),
		.exact = chance(30),
		.at_most = chance(50),
		.ticket = ticket_draw(),
		.ticket_ms = 3000,
		.reserve_ms = RESERVE_MS,
	};

	if (c.kind == CALL_BREAK)
		c.value = span_of(PICK(what));
	c.form = chance(50) ? FORM_ALONE : FORM_SHARED;
	c.beyond = c.range != 0;
	c.new_value = !c.exact || chance(20) ? c.value : span_of(PICK(values));
	return c;
}

static void answer_note(void *context, const struct answer *a)
{
	(void)context;
	ck_assert_uint_eq(a->call, tolds);
	told[tolds++] = *a;
}

/* As the daemon writes it; false: an error. */
static bool batch_is_carried_out(void)
{
	const struct script_sink sink = {NULL, answer_note};
	redisReader *reader = redisReaderCreate();
	struct span word[WORDS_MAX];
	struct buf out = {0};
	void *object = NULL;
	redisReply *said;
	int type;

	batch_reset(&batch);
	for (unsigned i = 0; i < calls; i++)
		batch_add(&batch, &keys, &call[i], 0);
	batch_write(&batch, &keys, NULL, script_text[SCRIPT_BATCH], &out);
	ck_assert_int_eq(redisReaderFeed(reader, buf_begin(&out), buf_length(&out)), REDIS_OK);
	ck_assert_int_eq(redisReaderGetReply(reader, &object), REDIS_OK);
	said = object;
	ck_assert_uint_le(said->elements, WORDS_MAX);
	for (size_t i = 0; i < said->elements; i++)
		word[i] = (struct span){said->element[i]->str, said->element[i]->len};
	type = redis_pair_command(&pair, word, said->elements);
	freeReplyObject(said);
	redisReaderFree(reader);
	buf_release(&out);
	tolds = 0;
	ck_assert_int_eq(resp_feed(&resp, buf_begin(&pair.out), buf_length(&pair.out)), 0);
	ck_assert_int_eq(resp_next(&resp), 1);
	ck_assert_msg(script_answer(&batch, &resp, 0, &sink) == 0, "%s a reply of no known shape", pair.note);
	ck_assert_uint_eq(tolds, calls);
	return type != REDIS_REPLY_ERROR;
}

/* -1: no number that was counted. */
static int64_t fence_now(void)
{
	redisReply *r = clocked_redis_tell(&pair.real, "GET %s", common_key[1]);
	char *end = NULL;
	int64_t fence = r->type == REDIS_REPLY_STRING ? strtoll(r->str, &end, 10) : r->type == REDIS_REPLY_NIL ? 0 : -1;

	if (end && (*end || end == r->str))
		fence = -1;
	freeReplyObject(r);
	return fence;
}

static void dump_one(struct buf *out, const char *key)
{
	redisReply *r = clocked_redis_tell(&pair.real, "DUMP %s", key), *pttl = clocked_redis_tell(&pair.real, "PTTL %s", key);

	buf_append(out, r->str ? r->str : "", r->len);
	buf_printf(out, "|%lld|", pttl->integer);
	freeReplyObject(r);
	freeReplyObject(pttl);
}

static void dump(struct buf *out)
{
	buf_clear(out);
	for (unsigned i = 0; i < NAMES; i++) {
		dump_one(out, lock_key[i]);
		dump_one(out, queue_key[i]);
	}
	dump_one(out, common_key[0]);
	dump_one(out, common_key[1]);
}

static bool is_in(struct span value, struct span key, bool shares)
{
	return span_equal(value, key) || (shares && key.n > 2 && (key.p[0] == 'R' || key.p[0] == '!') && memmem(key.p, key.n, value.p, value.n));
}

/* The key stands as this answer says. */
static void stands_as_told(const struct call *c, const struct answer *a)
{
	struct span value = c->kind == CALL_EXTEND ? c->new_value : c->value;
	redisReply *r = clocked_redis_tell(&pair.real, "GET lock:%b", c->name.p, c->name.n);
	redisReply *pttl = clocked_redis_tell(&pair.real, "PTTL lock:%b", c->name.p, c->name.n);
	bool shares = c->form == FORM_SHARED;

	ck_assert_msg(r->type == REDIS_REPLY_STRING && is_in(value, (struct span){r->str, r->len}, shares), "%s what was granted is not there", pair.note);
	ck_assert_msg((pttl->integer == a->pttl_ms || (shares && pttl->integer > a->pttl_ms)) && a->pttl_ms > 0, "%s told for %lld ms, and is there for %lld",
	              pair.note, (long long)a->pttl_ms, pttl->integer);
	freeReplyObject(r);
	freeReplyObject(pttl);
}

/* The lock was refused because it is kept for an older ticket. A grace later it is no longer kept. */
static void is_kept_for_a_grace_only(void)
{
	kept++;
	redis_pair_clock(&pair, pair.now_us + RESERVE_MS * MSEC);
	ck_assert(batch_is_carried_out());
	ck_assert_msg(told[0].code != 'W', "%s kept for longer than its grace", pair.note);
}

static void answers_check(int64_t fence)
{
	int64_t least = fence;

	for (unsigned i = 0; i < calls; i++) {
		met[call[i].kind][(unsigned char)(told[i].code ? told[i].code : '!')]++;
		unqueued += told[i].class == ANSWER_EXECUTED && told[i].defect == DEFECT_KEY;
		if (told[i].code == 'G')
			ck_assert_msg(least < 0 || told[i].fence > least, "%s %lld after %lld", pair.note, (long long)told[i].fence, (long long)least);
		if (told[i].class == ANSWER_EXECUTED && least >= 0 && told[i].fence > least)
			least = told[i].fence + (told[i].code == 'G' ? call[i].range : 0);
	}
	if (calls == 1 && told[0].code && strchr("GEA", told[0].code))
		stands_as_told(&call[0], &told[0]);
	if (calls == 1 && told[0].code == 'W')
		is_kept_for_a_grace_only();
}

static void round_play(struct buf *before, struct buf *after)
{
	int64_t fence;
	unsigned n = 1 + (unsigned)rng_below(&rng, CALLS_MAX);

	if (chance(50))
		time_passes();
	if (chance(30))
		is_spoilt();
	if (chance(20))
		is_mended();
	for (calls = 0; calls < n; calls++)
		call[calls] = call_draw();
	fence = fence_now();
	dump(before);
	if (batch_is_carried_out()) {
		answers_check(fence);
		ck_assert_msg(fence < 0 || fence_now() >= fence, "%s the fence fell", pair.note);
		return;
	}
	errors++;
	dump(after);
	ck_assert_msg(span_equal((struct span){buf_begin(before), buf_length(before)}, (struct span){buf_begin(after), buf_length(after)}),
	              "%s an error after something was written", pair.note);
}

/* A run that never met an answer proves nothing about it. */
static const char *row_missed(void)
{
	static const char *const codes[] = {"", "", "GBSWKQF!", "EABXKMQF!", "RN", "X", "MBSKQ", "XRMBKQ"};
	static char text[64];

	for (unsigned kind = 0; kind <= CALL_BREAK; kind++)
		for (const char *c = codes[kind]; *c; c++)
			if (met[kind][(unsigned char)*c] == 0) {
				snprintf(text, sizeof(text), "no call of kind %u was answered %c", kind, *c);
				return text;
			}
	return !errors ? "no error" : !kept ? "no reservation" : !unqueued ? "no queue of another type" : NULL;
}

FIXTURE(.before_all = suite_start, .after_all = suite_stop, .seconds = 120)

TEST(foreign_values_in_our_keys_break_no_promise)
{
	uint64_t seed = seed_pick("foreign_values");
	struct buf before = {0}, after = {0};

	rng_init(&rng, (uint64_t[]){seed, 5});
	redis_pair_clock(&pair, NOW);
	redis_pair_reset(&pair);
	is_mended();
	for (unsigned i = 0; i < ROUNDS || (i < 6 * ROUNDS && row_missed()); i++) {
		snprintf(pair.note, sizeof(pair.note), "seed %llu, round %u,", (unsigned long long)seed, i);
		round_play(&before, &after);
	}
	buf_release(&before);
	buf_release(&after);
	ck_assert_msg(!row_missed(), "%s", row_missed());
	printf("foreign_values: %u errors before anything was written, %u reservations\n", errors, kept);
}

/* A crowd of daemons has left a free lock unused. The daemon that takes it clears their notes. */
TEST(a_queue_of_thousands_is_passed_over)
{
	char member[64], score[24];
	struct call c = {
		.kind = CALL_ACQUIRE, .name = SPAN("a"), .value = span_of(values[0]), .marker = SPAN("j|one"), .px_ms = 1000, .reserve_ms = RESERVE_MS};

	redis_pair_clock(&pair, NOW);
	redis_pair_reset(&pair);
	is_mended();
	for (unsigned i = 0; i < CROWD; i++) {
		snprintf(member, sizeof(member), "~%016u:d%u.h:1", i, i);
		snprintf(score, sizeof(score), "%lld", (long long)(pair.now_us / 1000 + 60000 - RESERVE_MS));
		redis_pair_command(&pair, (struct span[]){SPAN("ZADD"), span_of(queue_key[0]), span_of(score), span_of(member)}, 4);
		redis_pair_command(&pair, (struct span[]){SPAN("ZADD"), span_of(queue_key[0]), span_of(score), span_of(member + 1)}, 4);
	}
	calls = 1;
	call[0] = c;
	ck_assert(batch_is_carried_out());
	ck_assert_int_eq(told[0].code, 'G');
	call[0] = (struct call){.kind = CALL_RELEASE, .name = SPAN("a"), .value = span_of(values[0]), .marker = SPAN("j|one")};
	ck_assert(batch_is_carried_out());
	ck_assert_int_eq(told[0].code, 'R');
}
