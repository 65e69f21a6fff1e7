/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies are compared as text, one value a line, so that a failure shows both in full. */
#include "tests/unit/duel.h"

#include <check.h>
#include <stdio.h>

void duel_start(struct duel *d, int64_t now_us)
{
	*d = (struct duel){.now_us = now_us};
	oracle_start(&d->oracle, now_us);
	redis_init(&d->redis);
	buf_init(&d->out);
}

void duel_stop(struct duel *d)
{
	oracle_stop(&d->oracle);
	redis_release(&d->redis);
	buf_release(&d->out);
}

void duel_clock(struct duel *d, int64_t now_us)
{
	d->now_us = now_us;
	*d->oracle.frozen_us = now_us;
}

/* Quoted, with what is no plain character in hex. */
static void text_print(const char *p, size_t n, struct buf *out)
{
	size_t i;

	buf_append(out, "'", 1);
	for (i = 0; i < n; i++)
		buf_printf(out, p[i] >= ' ' && p[i] < 127 ? "%c" : "\\x%02x", (unsigned char)p[i]);
	buf_append(out, "'", 1);
}

static void reply_print(const redisReply *r, struct buf *out)
{
	static const char *const names[] = {
		[REDIS_REPLY_STRING] = "string", [REDIS_REPLY_ARRAY] = "array",   [REDIS_REPLY_INTEGER] = "integer",
		[REDIS_REPLY_NIL] = "nil",       [REDIS_REPLY_STATUS] = "status", [REDIS_REPLY_ERROR] = "error",
	};
	size_t i;

	buf_printf(out, "%s ", names[r->type]);
	if (r->type == REDIS_REPLY_INTEGER)
		buf_printf(out, "%lld", r->integer);
	else if (r->type == REDIS_REPLY_ARRAY)
		buf_printf(out, "%zu", r->elements);
	else if (r->type != REDIS_REPLY_NIL)
		text_print(r->str, r->len, out);
	buf_append(out, "\n", 1);
	for (i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
		reply_print(r->element[i], out);
}

static redisReply *reply_read(const struct buf *bytes)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	ck_assert_int_eq(redisReaderFeed(reader, buf_begin(bytes), buf_length(bytes)), REDIS_OK);
	ck_assert_msg(redisReaderGetReply(reader, &reply) == REDIS_OK && reply && reader->len == reader->pos, "no reply: %.*s",
		      (int)buf_length(bytes), buf_begin(bytes));
	redisReaderFree(reader);
	return reply;
}

static void replies_compare(const struct duel *d, const struct span *word, size_t n, const redisReply *ours,
			    const redisReply *theirs)
{
	struct buf a = {0}, b = {0}, said = {0};
	size_t i;

	reply_print(ours, &a);
	reply_print(theirs, &b);
	if (buf_length(&a) != buf_length(&b) || memcmp(buf_begin(&a), buf_begin(&b), buf_length(&a)) != 0) {
		for (i = 0; i < n; i++) {
			buf_append(&said, " ", 1);
			text_print(word[i].p, word[i].n, &said);
		}
		buf_append(&said, "", 1);
		buf_append(&a, "", 1);
		buf_append(&b, "", 1);
		ck_abort_msg("%s at %lld us:%s\nmodel: %sredis: %s", d->note, (long long)d->now_us, buf_begin(&said),
			     buf_begin(&a), buf_begin(&b));
	}
	buf_release(&a);
	buf_release(&b);
}

int duel_command(struct duel *d, const struct span *word, size_t n)
{
	redisReply *theirs = oracle_say(&d->oracle, word, n), *ours;
	int type = theirs->type;

	buf_clear(&d->out);
	redis_command(&d->redis, d->now_us, word, n, &d->out);
	ours = reply_read(&d->out);
	replies_compare(d, word, n, ours, theirs);
	freeReplyObject(ours);
	freeReplyObject(theirs);
	return type;
}

static size_t words_split(const char *text, struct span *word, size_t n)
{
	const char *end;

	while (*text) {
		end = strchrnul(text, ' ');
		word[n++] = (struct span){text, (size_t)(end - text)};
		text = *end ? end + 1 : end;
	}
	return n;
}

int duel_tell(struct duel *d, const char *words)
{
	struct span word[64];

	return duel_command(d, word, words_split(words, word, 0));
}

int duel_eval(struct duel *d, const char *script, const char *words)
{
	struct span word[64] = {SPAN("EVAL"), span_of(script)};

	return duel_command(d, word, words_split(words, word, 2));
}

void duel_reset(struct duel *d)
{
	duel_tell(d, "FLUSHALL");
	duel_tell(d, "SCRIPT FLUSH");
}
