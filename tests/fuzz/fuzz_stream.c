/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a Redis server's, in a conversation with calls in flight: every call is answered exactly once, with an answer that
 * its kind allows, and in the same way whether the bytes arrive whole or one by one. The first byte says which calls there are and
 * whether the handshake is already done.
 */
#include "daemon/redis/stream.h"
#include "tests/fuzz/fuzz.h"

#define CALLS 12
#define SHA   "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"
#define HANDS "$3\r\nrun\r\n" SHA SHA SHA

struct outcome {
	unsigned answers[CALLS];
	int class[CALLS];
	char code[CALLS];
	int64_t fence[CALLS];
	size_t found[CALLS], text[CALLS];
	bool wrong;
	size_t ready_at; /* bytes that the handshake took */
};

static const char *const codes[] = {"P", "JX", "GBKQLFW", "EABKMQF", "RN", "X", "MBKQ"};

static enum call_kind kind_of(uint8_t choice, unsigned id)
{
	static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_EXTEND, CALL_RELEASE, CALL_PROBE, CALL_MARK, CALL_LOOK};

	if (choice & 2)
		return kinds[id % 3];
	return choice & 4 ? kinds[(id / 3) % 6] : CALL_ACQUIRE;
}

static uint8_t chosen;

static void on_answer(void *context, const struct answer *a)
{
	struct outcome *o = context;

	PROMISE(a->call < CALLS);
	o->answers[a->call]++;
	o->class[a->call] = a->class;
	o->code[a->call] = a->code;
	o->fence[a->call] = a->fence;
	o->found[a->call] = a->found.n;
	o->text[a->call] = a->text.n;
	PROMISE(a->found.n <= MARKER_MAX);
	PROMISE((a->class == ANSWER_EXECUTED) == (a->code != 0));
	PROMISE(!a->code || strchr(codes[kind_of(chosen, (unsigned)a->call)], a->code));
	PROMISE((a->probe != NULL) == (a->code == 'P'));
	PROMISE(a->fence >= -1 && a->pttl_ms >= -2 && a->server_us >= 0);
}

static void calls_make(struct stream *s, struct instant now)
{
	unsigned id;

	for (id = 0; id < CALLS; id++) {
		struct call call = {.id = id,
				    .kind = kind_of(chosen, id),
				    .name = SPAN("n"),
				    .value = SPAN("d:1:0"),
				    .new_value = SPAN("d:1:0"),
				    .marker = id < 6 ? SPAN("m") : SPAN("o"),
				    .new_marker = SPAN("j"),
				    .px_ms = 1000};

		stream_call(s, &call, id % 5);
		if (id % 4 == 3)
			stream_flush(s, now);
	}
	stream_flush(s, now);
	stream_ping(s, now);
}

/*
 * Feeds the data in steps; the first step has `first` bytes. A server does not answer what was not asked yet, and most is asked once the handshake is over:
 * that is where the first step of a whole conversation ends.
 */
static void converse(const uint8_t *data, size_t size, size_t step, size_t first, struct outcome *o)
{
	static char password[] = "secret";
	struct stream_conf conf = {.password = chosen & 8 ? password : NULL, .database = chosen & 16 ? 3 : 0};
	const struct script_sink sink = {o, on_answer};
	const struct instant now = {1};
	const char *wrong = NULL;
	struct stream s;
	size_t at, n;

	script_keys_init(&conf.keys, "lock:", 1, 0, "");
	stream_init(&s, &conf, 0, &sink);
	stream_open(&s, now);
	if (chosen & 1) {
		const char *hands = chosen & 8    ? (chosen & 16 ? "+OK\r\n+OK\r\n" HANDS : "+OK\r\n" HANDS)
				    : chosen & 16 ? "+OK\r\n" HANDS
						  : HANDS;

		PROMISE(!stream_take(&s, hands, strlen(hands), now));
	}
	calls_make(&s, now);
	for (at = 0; at < size && !wrong; at += n) {
		n = at < first ? first - at : size - at < step ? size - at : step;
		wrong = stream_take(&s, data + at, n, now);
		stream_flush(&s, now);
		stream_consume(&s, buf_length(&s.out));
		if (s.ready && !o->ready_at)
			o->ready_at = at + n;
	}
	o->wrong = wrong != NULL;
	PROMISE(!wrong || *wrong || s.reason == wrong);
	stream_close(&s, s.handed, wrong ? wrong : "closed");
	stream_release(&s);
	script_keys_release(&conf.keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = {0}, split = {0};
	unsigned id;

	if (!size)
		return 0;
	chosen = data[0];
	converse(data + 1, size - 1, 1, 0, &split);
	converse(data + 1, size - 1, size, split.ready_at, &whole);
	PROMISE(whole.wrong == split.wrong);
	for (id = 0; id < CALLS; id++) {
		PROMISE(whole.answers[id] == 1 && split.answers[id] == 1);
		PROMISE(whole.code[id] == split.code[id] && whole.fence[id] == split.fence[id] &&
			whole.found[id] == split.found[id]);
	}
	return 0;
}
