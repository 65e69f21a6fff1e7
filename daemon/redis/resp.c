/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hiredis parses; its object functions write into our list. So a reply of 256 rows needs no allocation. A reply that announces a million elements is refused
 * before memory is allocated for them. A hiredis "object" is our index plus one.
 */
#include "daemon/redis/resp.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>

#if HIREDIS_MAJOR >= 1
typedef size_t elements_n;
#else
typedef int elements_n;
#endif

#define UNREAD_KEEP ((size_t)16 * 1024) /* bytes; a larger buffer frees its memory when it is empty */

static void *handle_of(uint32_t index)
{
	return (void *)(uintptr_t)(index + 1);
}

/* Extends all open parents of the new value, so that they end after it. */
static void stretch_parents(struct resp *r, const redisReadTask *task)
{
	for (task = task->parent; task; task = task->parent)
		r->value[(uintptr_t)task->obj - 1].end = r->count;
}

static struct resp_value *value_add(const redisReadTask *task, enum resp_type type)
{
	struct resp *r = task->privdata;
	struct resp_value *v;

	if (r->count == RESP_VALUES_MAX)
		return NULL;
	if (r->count == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->value = mem_grow(r->value, r->cap, sizeof(*r->value));
	}
	v = &r->value[r->count++];
	*v = (struct resp_value){.type = type, .end = r->count};
	stretch_parents(r, task);
	return v;
}

static void *handle_last(const redisReadTask *task)
{
	const struct resp *r = task->privdata;

	return handle_of(r->count - 1);
}

static void *create_string(const redisReadTask *task, char *text, size_t n)
{
	struct resp *r = task->privdata;
	enum resp_type type = task->type == REDIS_REPLY_ERROR    ? RESP_ERROR
			      : task->type == REDIS_REPLY_STATUS ? RESP_STATUS
								 : RESP_STRING;
	struct resp_value *v;

	if (task->type != REDIS_REPLY_STRING && type == RESP_STRING)
		return NULL; /* RESP3, which was not asked for */
	if (n > RESP_BYTES_MAX - buf_length(&r->bytes))
		return NULL;
	v = value_add(task, type);
	if (!v)
		return NULL;
	v->at = buf_length(&r->bytes);
	v->n = n;
	buf_append(&r->bytes, text, n);
	return handle_last(task);
}

static void *create_array(const redisReadTask *task, elements_n elements)
{
	struct resp_value *v;

	if (task->type != REDIS_REPLY_ARRAY || elements < 0 || elements > RESP_VALUES_MAX)
		return NULL;
	v = value_add(task, RESP_ARRAY);
	if (!v)
		return NULL;
	v->children = (uint32_t)elements;
	return handle_last(task);
}

static void *create_integer(const redisReadTask *task, long long n)
{
	struct resp_value *v = value_add(task, RESP_INTEGER);

	if (!v)
		return NULL;
	v->integer = n;
	return handle_last(task);
}

static void *create_nil(const redisReadTask *task)
{
	return value_add(task, RESP_NIL) ? handle_last(task) : NULL;
}

/* Handles own nothing. */
static void free_object(void *object)
{
	(void)object;
}

#if HIREDIS_MAJOR >= 1
static void *create_double(const redisReadTask *task, double d, char *text, size_t n)
{
	(void)task, (void)d, (void)text, (void)n;
	return NULL;
}

static void *create_bool(const redisReadTask *task, int b)
{
	(void)task, (void)b;
	return NULL;
}
#endif

static redisReplyObjectFunctions functions = {
	.createString = create_string,
	.createArray = create_array,
	.createInteger = create_integer,
	.createNil = create_nil,
	.freeObject = free_object,
#if HIREDIS_MAJOR >= 1
	.createDouble = create_double,
	.createBool = create_bool,
#endif
};

void resp_init(struct resp *r)
{
	*r = (struct resp){0};
	buf_init(&r->bytes);
	buf_init(&r->unread);
	resp_reset(r);
}

void resp_reset(struct resp *r)
{
	if (r->reader)
		redisReaderFree(r->reader);
	r->reader = redisReaderCreateWithFunctions(&functions);
	if (!r->reader)
		mem_exhausted();
	r->reader->privdata = r;
	r->reader->maxbuf = RESP_BYTES_MAX; /* bytes that the empty reader may keep allocated */
	r->count = 0;
	r->complete = false;
	buf_clear(&r->bytes);
	buf_clear(&r->unread);
}

void resp_release(struct resp *r)
{
	if (r->reader)
		redisReaderFree(r->reader);
	buf_release(&r->bytes);
	buf_release(&r->unread);
	free(r->value);
	*r = (struct resp){0};
}

int resp_feed(struct resp *r, const void *p, size_t n)
{
	buf_append(&r->unread, p, n);
	return redisReaderFeed(r->reader, p, n) == REDIS_OK ? 0 : -EPROTO;
}

int resp_next(struct resp *r)
{
	void *root = NULL;

	if (r->complete) {
		r->complete = false;
		r->count = 0;
		buf_clear(&r->bytes);
	}
	if (redisReaderGetReply(r->reader, &root) != REDIS_OK)
		return -EPROTO;
	if (root) {
		r->complete = true;
		buf_consume(&r->unread, buf_length(&r->unread) - (r->reader->len - r->reader->pos));
		buf_trim(&r->unread, UNREAD_KEEP);
		return 1;
	}
	/* Bounds a text that never ends. */
	return r->reader->len - r->reader->pos > RESP_BYTES_MAX ? -EPROTO : 0;
}
