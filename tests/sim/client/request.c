/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of clients, written as lines. */
#include "tests/sim/world/world.h"

#include <stdarg.h>
#include <stdlib.h>

#define LINE_ROOM 10000 /* longer than a line that a daemon accepts */

static struct request_sim *request_new(struct sim_client *c, enum ask ask, struct task *t)
{
	struct request_sim *q = calloc(1, sizeof(*q));

	if (!q)
		abort();
	q->ask = ask;
	q->conn = c->conn;
	q->task = t;
	q->number = ++c->requests;
	q->anchor = client_boot(c);
	q->sent_at = c->world->now;
	q->due_at = INT64_MAX;
	if (t) {
		q->name = t->job.name;
		q->owner = t->job.owner;
		q->tagged = t->job.tagged != 0;
	}
	q->tagged |= ask == ASK_STORM || ask == ASK_LIST || ask == ASK_READ || ask == ASK_NEST || ask == ASK_RATE || ask == ASK_PERMIT || ask == ASK_REPEAT ||
		     ask == ASK_CHORE || ask >= ASK_COMPLETE;
	TAILQ_INSERT_TAIL(&c->world->requests, q, in_world);
	return q;
}

/* NULL: the client is stopped or has no connection, and asks nothing. */
struct request_sim *client_ask(struct sim_client *c, enum ask ask, struct task *t, const char *format, ...)
{
	char line[LINE_ROOM];
	struct request_sim *q;
	va_list list;
	int n = 0, tag;

	if (!c->conn || c->conn->left || c->state != CLIENT_RUNNING)
		return NULL;
	q = request_new(c, ask, t);
	if (q->tagged)
		n = snprintf(line, sizeof(line), "@t%u ", q->number);
	tag = n;
	va_start(list, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, list);
	va_end(list);
	snprintf(q->asked, sizeof(q->asked), "%.47s", line + tag);
	line[n++] = '\n';
	q->extends = !strncmp(line + tag, "EXTEND ", 7);
	TAILQ_INSERT_TAIL(&c->conn->open, q, at_client);
	conn_write(c->conn, line, (size_t)n, q);
	return q;
}

static void owner_word(const struct task *t, char *out)
{
	out[0] = '\0';
	if (t->job.owner)
		snprintf(out, 24, " owner=%lld", (long long)t->job.owner);
}

/* The daemon may be one of a shorter max_delay. */
static int64_t job_delay_us(const struct task *t)
{
	const struct plan *p = t->client->world->plan;
	int64_t which = t->job.delay;

	if (!plan_mixes_delays(p))
		return p->delay_us;
	while (plan_delay_us(p, which) > t->client->daemon->conf.max_delay_us)
		which--;
	return plan_delay_us(p, which);
}

void client_lock(struct task *t, int64_t wait_ms)
{
	const struct plan *p = t->client->world->plan;
	char wait[32] = "", delay[32] = "", priority[32] = "", ttl[32] = "", owner[24];
	struct request_sim *q;
	int64_t ttl_ms = plan_lock_ms(p, t->job.ttl_ms), delay_us = job_delay_us(t);

	owner_word(t, owner);
	if (wait_ms < 0)
		snprintf(wait, sizeof(wait), " wait=forever");
	else if (wait_ms > 0)
		snprintf(wait, sizeof(wait), " wait=%lldms", (long long)wait_ms);
	if (ttl_ms)
		snprintf(ttl, sizeof(ttl), " ttl=%lldms", (long long)ttl_ms);
	if (delay_us)
		snprintf(delay, sizeof(delay), " delay=%lldms", (long long)(delay_us / MSEC));
	if (t->job.priority)
		snprintf(priority, sizeof(priority), " priority=%lld", (long long)t->job.priority);
	q = client_ask(t->client, ASK_LOCK, t, "LOCK %s%s%s%s%s%s%s", name_of(t->job.name), ttl, wait, owner,
		        t->job.renew ? "" : " renew=no", delay, priority);
	if (!q)
		return;
	q->priority = t->job.priority;
	q->locks = true;
	q->wait_ms = wait_ms;
	q->ttl_ms = ttl_ms;
	q->renews = t->job.renew;
	q->once = !t->job.renew;
	if (t->state == TASK_IDLE)
		t->lock = q;
}

void client_check(struct task *t)
{
	char owner[24];

	owner_word(t, owner);
	client_ask(t->client, ASK_CHECK, t, "CHECK %s%s", name_of(t->job.name), owner);
}

int64_t job_ttl_ms(const struct task *t)
{
	return t->job.ttl_ms ? t->job.ttl_ms : t->client->world->plan->lease_us / MSEC;
}

void client_extend(struct task *t)
{
	char owner[24];
	struct request_sim *q;
	int64_t ttl_ms = t->job.extend < 0 && t->tick % 2 == 0 ? job_ttl_ms(t) : t->job.extend_ms;

	owner_word(t, owner);
	q = client_ask(t->client, ASK_EXTEND, t, "EXTEND %s ttl=%lldms%s", name_of(t->job.name), (long long)ttl_ms,
		       owner);
	if (!q)
		return;
	q->ttl_ms = ttl_ms;
	if (!instant_before(extend_end(q), t->hold->deadline))
		return;
	hold_shorten(t->hold, extend_end(q));
	t->hold->promised = t->hold->until;
}

/* The daemon may be one of a shorter max_lease. */
static int64_t keep_ms(const struct task *t)
{
	int64_t longest = t->client->daemon->conf.max_lease_us / MSEC;

	if (!t->job.keep_ms)
		return t->client->world->plan->lease_us / 2 / MSEC;
	return t->job.keep_ms < longest ? t->job.keep_ms : longest;
}

static void unlock_words(const struct task *t, enum ending how, char *out, size_t size)
{
	out[0] = '\0';
	if (how == END_FENCE)
		snprintf(out, size, " fence=%lld", (long long)t->hold->fence);
	else if (how == END_SYNC)
		snprintf(out, size, " sync=yes");
	else if (how == END_KEEP)
		snprintf(out, size, " keep=%lldms", (long long)keep_ms(t));
}

void client_unlock(struct task *t, enum ending how)
{
	char owner[24], words[48];
	struct request_sim *q;
	struct hold *h = t->hold;

	owner_word(t, owner);
	if (how == END_FENCE) {
		q = client_ask(t->client, ASK_UNLOCK, t, "UNLOCK %s%s fence=%lld", name_of(t->job.name), owner,
			       (long long)h->fence - 1);
		if (q)
			q->fence = h->fence - 1; /* the fence of an older grant: changes nothing */
	}
	unlock_words(t, how, words, sizeof(words));
	q = client_ask(t->client, ASK_UNLOCK, t, "UNLOCK %s%s%s", name_of(t->job.name), owner, words);
	if (!q)
		return;
	q->sync = how == END_SYNC;
	q->keep_ms = how == END_KEEP ? keep_ms(t) : 0;
	q->fence = how == END_FENCE ? h->fence : 0;
	q->ours = true;
	h = hold_find(t->client->conn, q->name, q->owner); /* the UNLOCK may end a later grant than the task's */
	if (q->fence && q->fence != h->fence)
		return;
	h->unlocking++;
	if ((int64_t)h->unlocking >= h->count)
		hold_disclaim(h);
}
