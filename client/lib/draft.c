/* SPDX-License-Identifier: BSD-2-Clause */
/* See draft.h. */
#include "client/lib/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/param.h>

void draft_release(struct draft *d)
{
	buffer_release(&d->line);
}

/* Where n more bytes have room; NULL: they have none. */
static char *draft_room(struct draft *d, size_t n)
{
	if (d->error)
		return NULL;
	d->error = n >= LINE_MAX_DEFAULT - d->n ? -EMSGSIZE : buffer_grow(&d->line, d->n + n + 1);
	return d->error ? NULL : d->line.p + d->n;
}

/* n bytes were written there. */
static void draft_wrote(struct draft *d, size_t n)
{
	d->n += n;
	d->line.p[d->n] = '\0';
}

void draft_text(struct draft *d, const char *text)
{
	size_t n = strlen(text);
	char *to = draft_room(d, n);

	if (!to)
		return;
	memcpy(to, text, n);
	draft_wrote(d, n);
}

/* Room for the longest that text may become, so far as a line may have that. */
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
	draft_bytes(d, before, (struct redlock_bytes){text, strlen(text)});
}

void draft_owner(struct draft *d, const char *owner)
{
	if (*owner)
		draft_quoted(d, " owner=", owner);
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

void draft_verb(struct draft *d, const char *verb)
{
	d->n = 0;
	d->error = 0;
	draft_text(d, verb);
}

void draft_begin(struct draft *d, const char *verb, const char *name)
{
	draft_verb(d, verb);
	draft_quoted(d, " ", name);
}

void draft_wait(struct draft *d, int64_t wait_ms, size_t *ret_wait_at, size_t *ret_wait_n)
{
	*ret_wait_at = d->n;
	if (wait_ms < 0)
		draft_text(d, " wait=forever");
	else if (wait_ms)
		draft_ms(d, "wait", wait_ms);
	*ret_wait_n = d->n - *ret_wait_at;
}

void draft_options(struct draft *d, const struct redlock_options *o, size_t *ret_wait_at, size_t *ret_wait_n)
{
	draft_wait(d, o->wait_ms, ret_wait_at, ret_wait_n);
	if (o->ttl_ms)
		draft_ms(d, "ttl", o->ttl_ms);
	if (o->slots > 0)
		draft_number(d, "limit", o->slots);
	if (o->shared)
		draft_text(d, " mode=shared");
	if (o->no_renew)
		draft_text(d, " renew=no");
	if (o->note)
		draft_quoted(d, " note=", o->note);
	if (o->trace)
		draft_quoted(d, " trace=", o->trace);
	if (o->priority)
		draft_number(d, "priority", o->priority);
	if (o->delay_ms > 0)
		draft_ms(d, "delay", o->delay_ms);
}
