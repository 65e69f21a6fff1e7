/* SPDX-License-Identifier: BSD-2-Clause */
/* What is held, and what is said of it. */
#include "tests/clients/adapter_c/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

struct holds holds = LIST_HEAD_INITIALIZER(holds);

/* --- what is said --- */

void say_field(const char *key, const char *text)
{
	printf(", \"%s\": ", key);
	json_say(text, strlen(text));
}

void say_bytes(const char *key, struct redlock_bytes text)
{
	printf(", \"%s\": ", key);
	if (text.p)
		json_say(text.p, text.n);
	else
		printf("null");
}

void say_end(const char *end)
{
	printf("%s\n", end);
	fflush(stdout);
}

double left(const struct hold *h)
{
	int64_t until = INT64_MAX;

	for (size_t i = 0; i < h->n; i++)
		until = MIN(until, h->part[i].until_us);
	return h->lost ? 0 : (double)MAX(until - redlock_now_us(), 0) / 1e6;
}

static void say_event(const char *event, const struct hold *h, const char *name)
{
	printf("{\"event\": \"%s\"", event);
	say_field("lock", h->handle);
	say_field("name", name);
	say_field("reason", h->reason);
	say_end("}");
}

void say_state(const struct hold *h)
{
	printf("{\"held\": %s, \"lost\": %s, \"remaining\": %f, \"fence\": %lld", left(h) > 0 ? "true" : "false", h->lost ? "true" : "false", left(h),
	       (long long)h->part[0].fence);
	say_field("reason", h->reason);
	printf("}");
}

void say_granted(const struct hold *h)
{
	if (h->takes) {
		printf("{\"attempt\": %lld, \"fence\": %lld", (long long)h->job.attempt, (long long)h->job.fence);
		say_field("id", h->job.id);
		say_bytes("payload", (struct redlock_bytes){h->job.payload, h->job.payload_n});
		printf("}");
		return;
	}
	printf("{\"fence\": %lld, \"remaining\": %f, \"permit\": %s", (long long)h->part[0].fence, left(h), *h->permit ? h->permit : "null");
	say_field("name", h->part[0].name);
	printf(", \"fences\": {");
	for (size_t i = 0; i < h->n; i++) {
		printf(i ? ", " : "");
		json_say(h->part[i].name, strlen(h->part[i].name));
		printf(": %lld", (long long)h->part[i].fence);
	}
	printf("}}");
}

/* --- holds --- */

struct hold *hold_find(const char *handle)
{
	struct hold *h;

	LIST_FOREACH(h, &holds, next)
		if (handle && !strcmp(h->handle, handle))
			return h;
	return NULL;
}

void hold_free(struct hold *h)
{
	free(h->job.payload);
	free(h);
}

void hold_drop(struct hold *h)
{
	LIST_REMOVE(h, next);
	hold_free(h);
}

static void hold_lose(struct hold *h, const char *name, struct redlock_bytes reason)
{
	if (h->lost)
		return;
	h->lost = true;
	snprintf(h->reason, sizeof(h->reason), "%.*s", (int)reason.n, reason.p);
	say_event("lost", h, name);
}

void lose_all(const struct client *cl, const char *reason)
{
	struct hold *h;

	LIST_FOREACH(h, &holds, next)
		if (h->client == cl)
			hold_lose(h, h->part[0].name, (struct redlock_bytes){reason, strlen(reason)});
}

void lose_expired(void)
{
	struct hold *h;

	LIST_FOREACH(h, &holds, next)
		if (left(h) <= 0)
			hold_lose(h, h->part[0].name, (struct redlock_bytes){"expired", 7});
}

static bool is(struct redlock_bytes text, const char *wanted)
{
	return text.n == strlen(wanted) && !memcmp(text.p, wanted, text.n);
}

/* The part of a hold that a push tells of. NULL: it is of another hold. */
static struct part *part_of(struct hold *h, const struct redlock_line *push)
{
	struct redlock_bytes owner = redlock_line_find(push, "owner"), permit = redlock_line_find(push, "permit");

	if (h->takes)
		return is(redlock_line_find(push, "queue"), h->part[0].name) && is(redlock_line_find(push, "job"), h->job.id) ? h->part : NULL;
	if ((owner.p && *h->owner && !is(owner, h->owner)) || (permit.p && !is(permit, h->permit)))
		return NULL;
	for (size_t i = 0; i < h->n; i++)
		if (is(redlock_line_find(push, "name"), h->part[i].name) && redlock_line_number(push, "fence", 0) == h->part[i].fence)
			return &h->part[i];
	return NULL;
}

void hear_push(const struct client *cl, const struct redlock_line *push)
{
	struct hold *h;
	struct part *p;

	LIST_FOREACH(h, &holds, next) {
		p = h->client == cl ? part_of(h, push) : NULL;
		if (p && redlock_line_is(push, "LOST"))
			hold_lose(h, p->name, redlock_line_find(push, "reason"));
		if (!p || h->lost || !redlock_line_is(push, "RISK"))
			continue;
		p->until_us = MIN(p->until_us, redlock_now_us() + 1000 * redlock_line_number(push, "left_ms", 0));
		say_event("risk", h, p->name);
	}
}
