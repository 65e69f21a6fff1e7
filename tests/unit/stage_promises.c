/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What holds whatever a test does (S1, S2, S3, S11, S13 of tests/sim/check/invariant.def). A belief is what a client may think that it holds: from its last OK for valid_ms
 * more, until it says UNLOCK, is told LOST, or ends for certain. It ends sooner when the client asks for a shorter lease.
 */
#include "daemon/base/mem.h"
#include "tests/unit/stage_part.h"

#include <stdio.h>
#include <stdlib.h>

#define BELIEFS 4096
#define DEAD    4096

static struct belief {
	bool live;
	unsigned session;
	char name[NAME_MAX_BYTES + 1];
	struct instant until;
} belief[BELIEFS];
static unsigned beliefs;

/* The last grant of each name. */
static struct granted {
	char name[NAME_MAX_BYTES + 1];
	int64_t fence;
} granted[BELIEFS];
static unsigned grants;

static char dead[DEAD][VALUE_MAX + 1];
static unsigned deads;
static bool values_are_shared;
static bool moves_are_told, is_left[STAGE_SESSIONS];

void promises_open(void)
{
	beliefs = grants = deads = 0;
	values_are_shared = moves_are_told = false;
	memset(is_left, 0, sizeof(is_left));
}

void lives_share_values(void)
{
	values_are_shared = true;
}

void promises_close(void)
{
	beliefs = grants = deads = 0;
}

/* --- dead values --- */

static bool value_is_dead(const char *value)
{
	for (unsigned i = 0; i < deads && i < DEAD; i++) /* of more the last are known */
		if (strcmp(dead[i], value) == 0)
			return true;
	return false;
}

static void value_dies(struct span value)
{
	char text[VALUE_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)value.n, value.p);
	if (!value_is_dead(text))
		strcpy(dead[deads++ % DEAD], text);
}

/* An EXTEND without a floor leaves the key behind without a holder: a release with a delay. */
void promise_call(const struct call *c)
{
	char value[VALUE_MAX + 1] = "";
	bool ends = c->kind == CALL_RELEASE || (c->kind == CALL_EXTEND && c->fence == 0);
	struct span rest, other;

	if (c->kind == CALL_PROBE || c->kind == CALL_JOIN || c->kind == CALL_WITHDRAW || c->kind == CALL_LOOK)
		return;
	memcpy(value, c->value.p, c->value.n);
	for (rest = ends ? c->prior : SPAN(""); span_word(&rest, &other);)
		value_dies(other);
	if (!ends)
		ck_assert_msg(values_are_shared || !value_is_dead(value), "the dead value %s is used again by a call of kind %d", value, (int)c->kind);
	else
		value_dies(c->value);
}

/* --- beliefs --- */

static void text_keep(char *to, size_t size, struct span from)
{
	snprintf(to, size, "%.*s", (int)from.n, from.p ? from.p : "");
}

static void belief_ends(unsigned session, struct span name)
{
	for (unsigned i = 0; i < beliefs; i++) {
		struct belief *b = &belief[i];

		if (b->live && b->session == session && span_equal(span_of(b->name), name))
			b->live = false;
	}
}

static void belief_begins(unsigned session, struct span name, int64_t valid_ms)
{
	struct belief *b = &belief[beliefs++ % BELIEFS];

	ck_assert_uint_lt(beliefs, BELIEFS);
	*b = (struct belief){.live = true, .session = session, .until = instant_add(stage.now, valid_ms * MSEC)};
	text_keep(b->name, sizeof(b->name), name);
}

static void promise_exclusion(unsigned session, struct span name)
{
	for (unsigned i = 0; i < beliefs; i++) {
		const struct belief *b = &belief[i];

		ck_assert_msg(!b->live || !span_equal(span_of(b->name), name) || !instant_before(stage.now, b->until),
			      "%.*s is granted to session %u while session %u may believe in it for %lld us", (int)name.n, name.p,
			      session, b->session, (long long)instant_diff(b->until, stage.now));
	}
}

static void promise_fence(struct span name, int64_t fence)
{
	for (unsigned i = 0; i < grants; i++) {
		if (!span_equal(span_of(granted[i].name), name))
			continue;
		ck_assert_msg(fence > granted[i].fence, "fence %lld of %.*s after %lld", (long long)fence, (int)name.n, name.p,
			      (long long)granted[i].fence);
		granted[i].fence = fence;
		return;
	}
	text_keep(granted[grants].name, sizeof(granted[grants].name), name);
	granted[grants++].fence = fence;
}

/* Where a test does not tell which sessions are of one client, whoever is confirmed is the one that believed. */
static void belief_is_confirmed(unsigned session, struct span name, int64_t valid_ms)
{
	if (is_left[session])
		return;
	for (unsigned i = 0; i < beliefs; i++)
		if ((belief[i].session == session || !moves_are_told) && span_equal(span_of(belief[i].name), name))
			belief[i].live = false;
	promise_exclusion(session, name);
	belief_begins(session, name, valid_ms);
}

/* A grant says ttl_ms and count=1. CHECK, EXTEND and a row of RESUME say valid_ms of what is held; a row of LIST says held_ms, too. */
void promise_line(unsigned session, const char *text)
{
	char line[REPLY_MAX];
	struct reply_line reply;
	struct span name;

	snprintf(line, sizeof(line), "%s", text);
	ck_assert_msg(reply_parse(line, strlen(line), &reply) == 0, "no reply of the protocol: %s", text);
	name = reply_find(&reply, "name");
	if (reply.kind == LINE_OK && reply_number(&reply, "ttl_ms", -1) >= 0 && reply_number(&reply, "count", -1) == 1) {
		promise_exclusion(session, name);
		promise_fence(name, reply_number(&reply, "fence", -1));
		if (!is_left[session])
			belief_begins(session, name, reply_number(&reply, "valid_ms", -1));
	}
	if (reply.kind == LINE_OK && reply_find(&reply, "valid_ms").p && reply_number(&reply, "ttl_ms", -1) < 0)
		belief_is_confirmed(session, name, reply_number(&reply, "valid_ms", -1));
	if (reply.kind == LINE_ROW && reply_find(&reply, "valid_ms").p && !reply_find(&reply, "held_ms").p)
		belief_is_confirmed(session, name, reply_number(&reply, "valid_ms", -1));
	if (reply.kind == LINE_PUSH && span_equal(reply.code, SPAN("LOST")))
		belief_ends(session, name);
}

/* Who asks for a shorter lease believes in no more than that, less one percent and 3 ms, whatever is answered. */
static void belief_is_shortened(unsigned session, struct span name, int64_t ttl_us)
{
	struct instant until = instant_add(stage.now, ttl_us - ttl_us / 100 - 3 * MSEC);

	for (unsigned i = 0; i < beliefs; i++)
		if (belief[i].live && belief[i].session == session && span_equal(span_of(belief[i].name), name))
			belief[i].until = instant_min(belief[i].until, until);
}

/* An UNLOCK, of whatever count, ends the belief here: the stage believes rather too little than too much. */
void promise_request(unsigned session, const char *text)
{
	size_t n = strlen(text);
	char *line = mem_copy(text, n);
	struct request request;
	struct mistake mistake;

	if (request_parse(line, n, &request, &mistake) == PARSE_OK) {
		if (request.verb == VERB_UNLOCK)
			belief_ends(session, request.word[0]);
		else if (request.verb == VERB_EXTEND && request_has(&request, FIELD_TTL))
			belief_is_shortened(session, request.word[0], request.field[FIELD_TTL].number);
	}
	free(line);
}

void promise_end(unsigned session, bool sure)
{
	for (unsigned i = 0; sure && i < beliefs; i++)
		if (belief[i].session == session)
			belief[i].live = false;
}

void promise_moves(unsigned from, unsigned to)
{
	moves_are_told = is_left[from] = true;
	for (unsigned i = 0; i < beliefs; i++)
		if (belief[i].session == from)
			belief[i].session = to;
}
