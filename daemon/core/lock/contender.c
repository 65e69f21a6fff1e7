/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/lock/contender.h"

#include <string.h>

void contender_line_up(struct contender *k, struct claim *c)
{
	struct claim *before = TAILQ_LAST(&k->waiters, claims);

	for (unsigned passed = 0; before && claim_stands_before(c, before) && passed < PASSED_MOST / (1U + c->asking->others); passed++)
		before = TAILQ_PREV(before, claims, in_lock);
	if (before)
		TAILQ_INSERT_AFTER(&k->waiters, before, c, in_lock);
	else
		TAILQ_INSERT_HEAD(&k->waiters, c, in_lock);
}

/* The host of the daemon whose id the text begins with: "<id>.<host>:…". */
static void host_note(struct span text, char host[HOST_MAX])
{
	const char *dot = memchr(text.p, '.', text.n);
	const char *colon = memchr(text.p, ':', text.n);
	size_t n = dot && colon && dot < colon ? (size_t)(colon - dot - 1) : 0;

	n = n < HOST_MAX ? n : HOST_MAX - 1;
	if (n > 0)
		memcpy(host, dot + 1, n);
	host[n] = '\0';
}

/* Whom to ask who has it: "<id>:<number>:…". A mark has more behind its number, see value.h, and no holder that could be told. */
static void daemon_note(struct span holder, struct elsewhere *elsewhere)
{
	const char *colon = memchr(holder.p, ':', holder.n);
	size_t n = colon ? (size_t)(colon - holder.p) : 0, i = n + 1;
	int64_t number = 0;

	elsewhere->number = 0;
	if (n == 0 || n >= DAEMON_ID_MAX)
		return;
	for (; i < holder.n && i < n + 19 && holder.p[i] >= '0' && holder.p[i] <= '9'; i++)
		number = number * 10 + (holder.p[i] - '0');
	if (i == holder.n || holder.p[i] != ':')
		return;
	memcpy(elsewhere->daemon, holder.p, n);
	elsewhere->daemon[n] = '\0';
	elsewhere->number = number;
}

void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a)
{
	struct span holder = answer_holder(a);
	bool own = span_starts(holder, span_of(core->daemon_id)); /* left behind, or of a run that has ended */

	elsewhere->foreign = holder.n == 0 && core->conf.shared;
	elsewhere->shared = a->code == 'S';
	elsewhere->held_us = value_held_us(holder, a->server_us);
	elsewhere->kept = value_is_kept(holder);
	elsewhere->host[0] = '\0';
	elsewhere->number = 0;
	if (span_starts(holder, SPAN("!")))
		return; /* broken: nobody holds it, and nobody gets it yet */
	if (!core->conf.shared || (own && elsewhere->kept))
		return;
	host_note(holder, elsewhere->host);
	if (!elsewhere->foreign && !elsewhere->kept && !own)
		daemon_note(holder, elsewhere);
}

void ticket_seen_note(const struct core *core, struct ticket_seen *seen, const struct answer *a)
{
	struct span holder = answer_holder(a), text;
	int64_t us = 0;
	size_t i;

	if (a->found.n <= holder.n)
		return;
	text = (struct span){holder.p + holder.n + 1, a->found.n - holder.n - 1};
	for (i = 0; i < text.n && i < 16 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
		us = us * 10 + (text.p[i] - '0');
	if (i == text.n || text.p[i] != ':' || us == 0 || (seen->us && seen->us <= us))
		return;
	text = (struct span){text.p + i + 1, text.n - i - 1};
	seen->us = us;
	seen->own = span_starts(text, span_of(core->daemon_id));
	host_note(text, seen->host);
}
