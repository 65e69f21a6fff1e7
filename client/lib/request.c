/* SPDX-License-Identifier: BSD-2-Clause */
/* See request.h. */
#include "client/lib/request.h"
#include "client/lib/boottime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/param.h>

/* Returns room for n more bytes; NULL: there is none. */
static char *draft_room(struct draft *d, size_t n)
{
	if (d->error)
		return NULL;
	d->error = n >= LINE_MAX_DEFAULT - d->n ? -EMSGSIZE : buffer_grow(&d->line, d->n + n + 1);
	return d->error ? NULL : d->line.p + d->n;
}

/* n bytes were written to that room. */
static void draft_wrote(struct draft *d, size_t n)
{
	d->n += n;
	d->line.p[d->n] = '\0';
}

static void draft_span(struct draft *d, const char *text, size_t n)
{
	char *to = draft_room(d, n);

	if (!to)
		return;
	memcpy(to, text, n);
	draft_wrote(d, n);
}

void draft_text(struct draft *d, const char *text)
{
	draft_span(d, text, strlen(text));
}

/* Reserves as much as text can need when quoted, within the limit of a line. */
void draft_bytes(struct draft *d, const char *before, struct redlock_bytes text)
{
	size_t most, n;
	char *to;

	draft_text(d, before);
	most = MIN(4 * MIN(text.n, LINE_MAX_DEFAULT) + 2, LINE_MAX_DEFAULT - 1 - d->n);
	to = draft_room(d, most);
	n = to ? quote((struct span){text.p, text.n}, to, most) : 0;
	if (n > 0)
		draft_wrote(d, n);
	else if (!d->error)
		d->error = -EMSGSIZE;
}

void draft_quoted(struct draft *d, const char *before, const char *text)
{
	if (text)
		draft_bytes(d, before, (struct redlock_bytes){text, strlen(text)});
}

void draft_number(struct draft *d, const char *field, int64_t number)
{
	char text[64];

	snprintf(text, sizeof(text), " %s=%" PRId64, field, number);
	draft_text(d, text);
}

void draft_ms(struct draft *d, const char *field, int64_t ms)
{
	draft_number(d, field, ms);
	draft_text(d, "ms");
}

void draft_positive(struct draft *d, const char *field, int64_t number, const char *unit)
{
	if (number <= 0)
		return;
	draft_number(d, field, number);
	draft_text(d, unit);
}

void draft_verb(struct draft *d, const char *verb)
{
	d->n = d->wait_at = 0;
	d->wait_ms = 0;
	d->error = 0;
	draft_text(d, verb);
}

void draft_begin(struct draft *d, const char *verb, const char *name)
{
	draft_verb(d, verb);
	draft_quoted(d, " ", name);
}

void draft_wait(struct draft *d, int64_t wait_ms)
{
	d->wait_ms = wait_ms;
	d->wait_at = d->n;
}

void draft_options(struct draft *d, const struct redlock_options *o)
{
	draft_wait(d, o->wait_ms);
	if (o->ttl_ms)
		draft_ms(d, "ttl", o->ttl_ms);
	draft_positive(d, "limit", o->slots, "");
	if (o->shared)
		draft_text(d, " mode=shared");
	if (o->no_renew)
		draft_text(d, " renew=no");
	draft_quoted(d, " note=", o->note);
	draft_quoted(d, " trace=", o->trace);
	if (o->priority)
		draft_number(d, "priority", o->priority);
	draft_positive(d, "delay", o->delay_ms, "ms");
}

/* --- in flight --- */

int pending_set(struct pending *p, enum pending_kind kind, const char *name, const struct draft *d)
{
	if (buffer_grow(&p->line, d->n + 1))
		return -ENOMEM;
	memcpy(p->name, name, strlen(name) + 1);
	memcpy(p->line.p, d->line.p, d->n + 1);
	p->kind = kind;
	p->shared = p->permit = p->anchors = false;
	p->n = d->n;
	p->wait_at = d->wait_at;
	p->wait_ms = d->wait_ms;
	p->wait_until_us = boottime_after(d->wait_ms);
	p->busy_ms = 0;
	return 0;
}

void pending_begin(struct pending *p, int64_t now)
{
	p->in_flight = true;
	p->sent_us = p->asked_us = now;
	p->sent = p->again = p->row_passed = p->cancelled = p->unsure = false;
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
	return p->kind != PENDING_ONCE && p->kind != PENDING_HELLO && !(p->kind == PENDING_READ && p->row_passed);
}

bool pending_locks(const struct pending *p)
{
	return p->kind == PENDING_LOCK || p->kind == PENDING_LOCKALL || p->kind == PENDING_LOCKANY;
}

void pending_draft(const struct pending *p, struct draft *d)
{
	draft_verb(d, "");
	draft_span(d, p->line.p, p->wait_at);
	if (p->wait_ms < 0)
		draft_text(d, " wait=forever");
	else if (p->wait_ms)
		draft_ms(d, "wait", p->wait_ms);
	draft_span(d, p->line.p + p->wait_at, p->n - p->wait_at);
}

void pending_wait_rest(struct pending *p, int64_t now)
{
	if (p->wait_ms > 0)
		p->wait_ms = MAX((p->wait_until_us - now) / US_PER_MS, 1);
}

bool pending_goes_on(const struct pending *p, const struct reply_line *answer, int64_t now)
{
	bool takes = p->kind == PENDING_TAKE, waits = p->kind == PENDING_READ || ((takes || pending_locks(p)) && now < p->wait_until_us);

	if (answer->kind != LINE_ERR || p->cancelled)
		return false;
	/* The lock was granted, but the stores have not confirmed yet that they still hold it. The caller waits for that. */
	if ((p->anchors || (p->unsure && pending_locks(p))) && span_equal(answer->code, SPAN("QUORUM")))
		return true;
	if (takes && p->unsure && span_equal(answer->code, SPAN("UNAVAILABLE")))
		return true;
	return waits && span_equal(answer->code, SPAN("DRAINING"));
}
