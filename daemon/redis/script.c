/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns replies into answers. It checks types, counts, codes and ranges of each reply, so the layers above need not.
 * No reply of a server may ever trip an assertion.
 */
#include "daemon/redis/script.h"
#include "daemon/redis/failure.h"

#include <errno.h>

#define FENCE_MAX (INT64_C(1) << 53) /* the largest integer that Lua keeps exactly */
#define FENCE_LAST INT64_C(9007190000000000) /* no larger token is granted: see lua/prelude.lua */

/* The codes of each operation. '!' (a refused entry) and a row that is a number are handled separately. */
static const char *const codes[] = {
	[CALL_ACQUIRE] = "GBWKQLFS",
	[CALL_EXTEND] = "EABKMQFXS",
	[CALL_RELEASE] = "",
	[CALL_WITHDRAW] = "",
	[CALL_LOOK] = "MBKQS",
	[CALL_BREAK] = "XRMBKQ",
};

#define RATE_CODES "YTB" /* of lua/rate.lua */
#define JOB_CODES  "DFBJWCLKPRMT" /* of lua/jobs.lua */

static const struct answer empty_answer = {.fence = -1, .pttl_ms = -2};

static bool is_text(const struct resp_value *v)
{
	return v->type == RESP_STRING || v->type == RESP_STATUS;
}

static bool is_number(const struct resp_value *v, int64_t min, int64_t max)
{
	return v->type == RESP_INTEGER && v->integer >= min && v->integer <= max;
}

/* Whether the root is an array of n values that begins with the server's clock. */
static bool root_matches(const struct resp *r, uint32_t n)
{
	return r->value[0].type == RESP_ARRAY && r->value[0].children == n && is_number(&r->value[1], 1, FENCE_MAX);
}

static bool code_is_possible(struct span code, enum call_kind kind)
{
	return code.n == 1 && code.p[0] && strchr(codes[kind], code.p[0]);
}

/* A look also shows a ticket, and so may a renewal, see event.h. */
static size_t found_max(char code, enum call_kind kind)
{
	return code == 'Q' || code == 'S' || kind == CALL_LOOK ? MARKER_MAX : VALUE_MAX;
}

/* {'!', message}: this entry alone was refused. */
static bool refusal_parse(const struct resp *r, const struct resp_value *row, struct answer *a)
{
	if (row->children != 2 || !is_text(&row[2]))
		return false;
	a->text = resp_text(r, &row[2]);
	a->class = failure_class(a->text);
	a->defect = failure_defect(a->text);
	return true;
}

static int64_t pttl_of(int64_t ms)
{
	return ms < PTTL_MOST_MS ? ms : PTTL_MOST_MS;
}

/* A number: the operation was done as requested. An acquire and a renewal answer the fence, and the key has the TTL of the call. */
static bool number_parse(int64_t n, const struct entry *e, struct answer *a)
{
	a->class = ANSWER_EXECUTED;
	switch (e->kind) {
	case CALL_ACQUIRE:
	case CALL_EXTEND:
		a->code = e->kind == CALL_ACQUIRE ? 'G' : 'E';
		a->fence = n;
		a->pttl_ms = pttl_of(e->terms.px_ms);
		return n >= 0 && n <= FENCE_MAX && e->terms.px_ms > 0;
	case CALL_RELEASE:
		a->code = n ? 'R' : 'N';
		return n == 0 || n == 1;
	case CALL_WITHDRAW:
		a->code = 'X';
		return n == 1;
	default:
		return false;
	}
}

/* {code, fence, pttl, holder or marker}, or a number. An acquire may add why its ticket was not queued. */
static bool row_parse(const struct resp *r, const struct resp_value *row, const struct entry *e, struct answer *ret_answer)
{
	struct answer a = empty_answer;
	struct span code;

	a.server_us = r->value[1].integer;
	if (row->type == RESP_INTEGER) {
		*ret_answer = a;
		return number_parse(row->integer, e, ret_answer);
	}
	if (row->type != RESP_ARRAY || row->children < 2 || !is_text(&row[1]))
		return false;
	code = resp_text(r, &row[1]);
	if (span_equal(code, SPAN("!"))) {
		if (!refusal_parse(r, row, &a))
			return false;
	} else {
		bool placeless = row->children == 5 && e->kind == CALL_ACQUIRE && is_text(&row[5]);

		if ((row->children != 4 && !placeless) || !code_is_possible(code, e->kind))
			return false;
		if (!is_number(&row[2], 0, FENCE_MAX) || !is_number(&row[3], -2, INT64_MAX) || !is_text(&row[4]))
			return false;
		a.class = ANSWER_EXECUTED;
		a.code = code.p[0];
		a.fence = row[2].integer;
		a.pttl_ms = pttl_of(row[3].integer);
		a.found = resp_text(r, &row[4]);
		if (placeless) {
			a.text = resp_text(r, &row[5]);
			a.defect = failure_defect(a.text);
		}
		if (a.found.n > found_max(a.code, e->kind))
			return false;
	}
	*ret_answer = a;
	return true;
}

static bool rows_are_sound(const struct batch *b, const struct resp *r)
{
	const struct resp_value *row = &r->value[2];
	struct answer a;
	unsigned i;

	for (i = 0; i < b->count; i++, row = &r->value[row->end]) {
		if (!row_parse(r, row, batch_entry(b, i), &a))
			return false;
	}
	return true;
}

static bool granted_parse(const struct batch *b, const struct resp *r, unsigned i, struct answer *ret_answer)
{
	const struct entry *e = batch_entry(b, i);

	*ret_answer = empty_answer;
	ret_answer->server_us = r->value[1].integer;
	ret_answer->call = e->id;
	return number_parse(e->kind == CALL_RELEASE ? 1 : e->fence, e, ret_answer);
}

/* Only the clock: all are releases, and acquires that succeeded. */
static int granted_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
{
	struct answer a;

	for (unsigned i = 0; i < b->count; i++) {
		if (!granted_parse(b, r, i, &a))
			return -EPROTO;
	}
	for (unsigned i = 0; i < b->count; i++) {
		(void)granted_parse(b, r, i, &a);
		a.node = node;
		sink->answer(sink->context, &a);
	}
	return 0;
}

static int rows_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
{
	const struct resp_value *row = &r->value[2];
	struct answer a;
	unsigned i;

	if (b->part[BATCH_OTHERS].count == 0 && root_matches(r, 1))
		return granted_answer(b, r, node, sink);
	if (!root_matches(r, b->count + 1) || !rows_are_sound(b, r))
		return -EPROTO;
	for (i = 0; i < b->count; i++, row = &r->value[row->end]) {
		(void)row_parse(r, row, batch_entry(b, i), &a);
		a.call = batch_entry(b, i)->id;
		a.node = node;
		sink->answer(sink->context, &a);
	}
	return 0;
}

/* {server_us, code, text} */
static int text_answer(const struct batch *b, const struct resp *r, unsigned node, const char *codes_of_script, size_t most, const struct script_sink *sink)
{
	struct answer a = empty_answer;
	struct span code;

	if (!root_matches(r, 3) || r->count != 4 || !is_text(&r->value[2]) || !is_text(&r->value[3]))
		return -EPROTO;
	code = resp_text(r, &r->value[2]);
	a.found = resp_text(r, &r->value[3]);
	if (code.n != 1 || !code.p[0] || !strchr(codes_of_script, code.p[0]) || a.found.n > most)
		return -EPROTO;
	a.class = ANSWER_EXECUTED;
	a.code = code.p[0];
	a.server_us = r->value[1].integer;
	a.call = batch_entry(b, 0)->id;
	a.node = node;
	sink->answer(sink->context, &a);
	return 0;
}

/* Parses a decimal number; false for any other text, including "". */
static bool decimal_parse(struct span text, int64_t *ret_n)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, text.p[i] - '0', &n))
			return false;
	}
	if (!text.n)
		return false;
	*ret_n = n;
	return true;
}

/* The order of the fields in lua/probe.lua, after the clock. */
enum probe_field {
	PROBE_MARKER,
	PROBE_FENCE,
	PROBE_RUN_ID,
	PROBE_REPLID,
	PROBE_VERSION,
	PROBE_ROLE,
	PROBE_MAXMEMORY,
	PROBE_POLICY,
	PROBE_EVICTED,
	PROBE_LOADING,
	PROBE_REPLID2,
	PROBE_REPL_INPUT,
	PROBE_AOF_ON,
	PROBE_SNAPSHOT,
	PROBE_REFUSAL,
	PROBE_CALLED,
	PROBE_N
};

static struct span probe_text(const struct resp *r, enum probe_field field)
{
	return resp_text(r, &r->value[2 + field]);
}

/* A replica has read bytes from its master. A promoted replica keeps the previous replication id as its second one. */
static bool data_is_its_own(struct span replid2, struct span input)
{
	for (size_t i = 0; i < replid2.n; i++)
		if (replid2.p[i] != '0')
			return false;
	return replid2.n > 0 && span_equal(input, SPAN("0"));
}

/* "SET OOM command not allowed …": the error after the name of the command. */
static struct span after_word(struct span text)
{
	const char *blank = memchr(text.p, ' ', text.n);

	return blank ? (struct span){blank + 1, text.n - (size_t)(blank + 1 - text.p)} : text;
}

static struct probe probe_of(const struct resp *r)
{
	struct probe p = {
		.marker = probe_text(r, PROBE_MARKER),
		.run_id = probe_text(r, PROBE_RUN_ID),
		.replid = probe_text(r, PROBE_REPLID),
		.version = probe_text(r, PROBE_VERSION),
		.role = probe_text(r, PROBE_ROLE),
		.policy = probe_text(r, PROBE_POLICY),
		.called = probe_text(r, PROBE_CALLED),
		.loading = span_equal(probe_text(r, PROBE_LOADING), SPAN("1")),
		.unsaved = span_equal(probe_text(r, PROBE_AOF_ON), SPAN("0")) && span_equal(probe_text(r, PROBE_SNAPSHOT), SPAN("-1")),
		.own_data = data_is_its_own(probe_text(r, PROBE_REPLID2), probe_text(r, PROBE_REPL_INPUT)),
	};

	if (probe_text(r, PROBE_REFUSAL).n) {
		p.refusal = probe_text(r, PROBE_REFUSAL);
		p.lesser = span_starts(p.refusal, SPAN("-"));
		if (p.lesser)
			p.refusal = (struct span){p.refusal.p + 1, p.refusal.n - 1};
		p.defect = failure_defect(after_word(p.refusal));
	}
	(void)decimal_parse(probe_text(r, PROBE_MAXMEMORY), &p.maxmemory); /* 0 if not reported */
	(void)decimal_parse(probe_text(r, PROBE_EVICTED), &p.evicted);
	return p;
}

static bool probe_is_sound(const struct resp *r)
{
	unsigned i;

	if (!root_matches(r, PROBE_N + 1) || r->count != PROBE_N + 2)
		return false;
	for (i = 0; i < PROBE_N; i++) {
		if (!is_text(&r->value[2 + i]))
			return false;
	}
	return probe_text(r, PROBE_MARKER).n <= MARKER_MAX;
}

static int probe_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
{
	struct answer a = empty_answer;
	struct probe p;

	if (!probe_is_sound(r))
		return -EPROTO;
	p = probe_of(r);
	a.call = batch_entry(b, 0)->id;
	a.node = node;
	a.server_us = r->value[1].integer;
	if (decimal_parse(probe_text(r, PROBE_FENCE), &a.fence) && a.fence <= FENCE_LAST) {
		a.class = ANSWER_EXECUTED;
		a.code = 'P';
		a.probe = &p;
	} else {
		a.class = ANSWER_UNKNOWN;
		a.defect = DEFECT_KEY;
		a.text = SPAN("the fence key holds no number that a fence may follow");
	}
	sink->answer(sink->context, &a);
	return 0;
}

int script_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
{
	struct span text;

	if (resp_is_error(r)) {
		text = resp_text(r, &r->value[0]);
		script_fail(b, node, failure_class(text), failure_defect(text), failure_text(text), sink);
		return 0;
	}
	if (r->count < 2)
		return -EPROTO;
	switch (b->script) {
	case SCRIPT_MARK:
		return text_answer(b, r, node, "JXL", MARKER_MAX, sink); /* the marker */
	case SCRIPT_TABLE:
	case SCRIPT_PUBLISH:
		return text_answer(b, r, node, "TQ", RESP_BYTES_MAX, sink);
	case SCRIPT_HOME:
		return text_answer(b, r, node, "QNH" RATE_CODES, RESP_BYTES_MAX, sink);
	case SCRIPT_JOBS:
		return text_answer(b, r, node, "QNH" JOB_CODES, RESP_BYTES_MAX, sink);
	case SCRIPT_PROBE:
		return probe_answer(b, r, node, sink);
	default:
		return rows_answer(b, r, node, sink);
	}
}

static void batch_fail(const struct batch *b, struct answer a, const struct script_sink *sink)
{
	unsigned i;

	for (i = 0; i < b->count; i++) {
		a.call = batch_entry(b, i)->id;
		sink->answer(sink->context, &a);
	}
}

void script_fail(const struct batch *b, unsigned node, enum answer_class class, enum defect defect, struct span text, const struct script_sink *sink)
{
	struct answer a = empty_answer;

	a.node = node;
	a.class = class;
	a.text = text;
	a.defect = defect;
	batch_fail(b, a, sink);
}

void script_unsent(const struct batch *b, unsigned node, struct span text, const struct script_sink *sink)
{
	struct answer a = empty_answer;

	a.node = node;
	a.class = ANSWER_REFUSED;
	a.unsent = true;
	a.text = text;
	batch_fail(b, a, sink);
}

bool script_is_missing(const struct resp *r)
{
	return resp_is_error(r) && failure_is(resp_text(r, &r->value[0]), "NOSCRIPT");
}
