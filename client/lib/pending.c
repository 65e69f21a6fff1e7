/* SPDX-License-Identifier: BSD-2-Clause */
/* See pending.h. */
#include "client/lib/pending.h"
#include "client/lib/boottime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int pending_set(struct pending *p, enum pending_kind kind, const char *name, const char *line, size_t n)
{
	if (buffer_grow(&p->line, n + COUNTED_BYTES))
		return -ENOMEM;
	p->kind = kind;
	p->shared = p->permit = p->anchors = false;
	memcpy(p->name, name, strlen(name) + 1);
	memcpy(p->line.p, line, n);
	p->n = n;
	p->wait_n = 0;
	p->wait_until_us = 0;
	return 0;
}

void pending_release(struct pending *p)
{
	buffer_release(&p->line);
}

void pending_wait(struct pending *p, size_t at, size_t n, int64_t until_us)
{
	p->wait_at = at;
	p->wait_n = n;
	p->wait_until_us = until_us;
}

void pending_begin(struct pending *p, int64_t now)
{
	p->in_flight = true;
	p->sent_us = p->asked_us = now;
	p->sent = p->again = p->told = p->cancelled = p->unsure = false;
	p->count = -1;
}

bool pending_is(const struct pending *p, enum pending_kind kind, const char *name)
{
	return p->in_flight && p->kind == kind && !strcmp(p->name, name);
}

bool pending_is_repeated(const struct pending *p)
{
	if (p->kind == PENDING_UNLOCK)
		return !p->sent || p->count >= 0;
	return p->kind != PENDING_ONCE && p->kind != PENDING_HELLO && !(p->kind == PENDING_READ && p->told);
}

bool pending_locks(const struct pending *p)
{
	return p->kind == PENDING_LOCK || p->kind == PENDING_LOCKALL || p->kind == PENDING_LOCKANY;
}

bool pending_asks_for(const struct pending *p, const struct hold *h)
{
	return p->in_flight && (h->in_bundle || pending_is(p, PENDING_LOCK, h->name));
}

void pending_wait_rest(struct pending *p, int64_t now)
{
	int64_t left = (p->wait_until_us - now) / US_PER_MS;
	char wait[32];
	size_t n;

	if (!p->wait_until_us || p->wait_until_us == INT64_MAX)
		return;
	n = (size_t)snprintf(wait, sizeof(wait), " wait=%" PRId64 "ms", left > 0 ? left : 1);
	/* The wait only shrinks, so the line never outgrows its room. */
	if (n > p->wait_n)
		return;
	memmove(p->line.p + p->wait_at + n, p->line.p + p->wait_at + p->wait_n, p->n - p->wait_at - p->wait_n);
	memcpy(p->line.p + p->wait_at, wait, n);
	p->n -= p->wait_n - n;
	p->wait_n = n;
}

bool pending_goes_on(const struct pending *p, const struct reply_line *answer, int64_t now)
{
	bool takes = p->kind == PENDING_TAKE, waits = p->kind == PENDING_READ || ((takes || pending_locks(p)) && now < p->wait_until_us);

	if (answer->kind != LINE_ERR || p->cancelled)
		return false;
	/* The lock was granted, and the stores have not confirmed yet that they still hold it. The caller waits for that. */
	if ((p->anchors || (p->unsure && pending_locks(p))) && span_equal(answer->code, SPAN("QUORUM")))
		return true;
	if (takes && p->unsure && span_equal(answer->code, SPAN("UNAVAILABLE")))
		return true;
	return waits && span_equal(answer->code, SPAN("DRAINING"));
}
