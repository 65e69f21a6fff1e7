/* SPDX-License-Identifier: BSD-2-Clause */
/* See draft.h. */
#include "client/draft.h"

#include <inttypes.h>
#include <stdio.h>

static void draft_span(struct draft *d, struct span text)
{
	if (d->full || d->n + text.n >= sizeof(d->line)) {
		d->full = true;
		return;
	}
	memcpy(d->line + d->n, text.p, text.n);
	d->n += text.n;
}

void draft_text(struct draft *d, const char *text)
{
	draft_span(d, span_of(text));
}

void draft_bytes(struct draft *d, const char *before, struct redlock_bytes text)
{
	char quoted[LINE_MAX_DEFAULT];
	size_t n = quote((struct span){text.p, text.n}, quoted, sizeof(quoted));

	draft_text(d, before);
	draft_span(d, (struct span){quoted, n});
	d->full |= !n;
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
	d->full = false;
	draft_text(d, verb);
}

void draft_begin(struct draft *d, const char *verb, const char *name)
{
	draft_verb(d, verb);
	draft_quoted(d, " ", name);
}

void draft_options(struct draft *d, const struct redlock_options *o, size_t *ret_wait_at, size_t *ret_wait_n)
{
	*ret_wait_at = d->n;
	if (o->wait_ms < 0)
		draft_text(d, " wait=forever");
	else if (o->wait_ms)
		draft_ms(d, "wait", o->wait_ms);
	*ret_wait_n = d->n - *ret_wait_at;
	if (o->ttl_ms)
		draft_ms(d, "ttl", o->ttl_ms);
	if (o->slots > 0)
		draft_number(d, "limit", o->slots);
	if (o->slots > 0 && o->weight > 0)
		draft_number(d, "weight", o->weight);
	if (o->shared)
		draft_text(d, " mode=shared");
	if (o->no_renew)
		draft_text(d, " renew=no");
	if (o->note)
		draft_quoted(d, " note=", o->note);
	if (o->priority)
		draft_number(d, "priority", o->priority);
	if (o->delay_ms > 0)
		draft_ms(d, "delay", o->delay_ms);
}
