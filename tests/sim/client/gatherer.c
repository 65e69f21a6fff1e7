/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCKALL and LOCKANY of the names r0 …, beside what readers and writers do with them. */
#include "tests/sim/world/world.h"

static bool is_group(const struct request_sim *q)
{
	return q->ask == ASK_READ && (q->reads == READ_ALL || q->reads == READ_ANY);
}

static struct request_sim *group_open(const struct sim_client *c)
{
	struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (is_group(q))
			return q;
	return NULL;
}

/* Some names in any order, none that the client holds too often. */
static unsigned draw_names(struct sim_client *c, char *out, size_t size)
{
	int64_t first = stream_range(&c->reads, 0, READ_NAMES - 1), step = stream_chance(&c->reads, 50) ? 1 : READ_NAMES - 1;
	int64_t many = stream_range(&c->reads, 1, READ_NAMES);
	unsigned names = 0;
	int n = 0;

	for (int64_t i = 0; i < many; i++) {
		int64_t name = (first + i * step) % READ_NAMES;

		if (c->reading[name].count >= READ_MOST)
			return 0;
		names |= 1U << name;
		n += snprintf(out + n, size - (size_t)n, " r%lld", (long long)name);
	}
	return names;
}

/* The fields that are no matter to the client itself. */
static void draw_terms(struct sim_client *c, bool shared, char *out, size_t size)
{
	int64_t lease_ms = c->world->plan->lease_us / MSEC;
	int n = 0;

	out[0] = '\0';
	if (shared)
		n = snprintf(out, size, " mode=shared");
	else if (stream_chance(&c->reads, 10))
		n = snprintf(out, size, " renew=no");
	if (stream_chance(&c->reads, 40))
		snprintf(out + n, size - (size_t)n, " ttl=%lldms", (long long)lease_ms / (stream_chance(&c->reads, 50) ? 2 : 1));
}

static void say_group(struct sim_client *c)
{
	static const int64_t waits[] = {0, 0, 20, 300, 3000, 10000};
	int64_t wait_ms = waits[stream_range(&c->reads, 0, 5)];
	bool any = stream_chance(&c->reads, 30), shared = stream_chance(&c->reads, 20);
	int64_t priority = stream_chance(&c->reads, 10);
	char names[64], wait[32] = "", terms[64];
	unsigned group = draw_names(c, names, sizeof(names));
	struct request_sim *q;

	draw_terms(c, shared, terms, sizeof(terms));
	if (!group)
		return;
	if (wait_ms > 0)
		snprintf(wait, sizeof(wait), " wait=%lldms", (long long)wait_ms);
	q = client_ask(c, ASK_READ, NULL, "%s%s%s%s%s", any ? "LOCKANY" : "LOCKALL", names, wait, terms, priority ? " priority=1" : "");
	if (!q)
		return;
	q->name = 0;
	q->reads = any ? READ_ANY : READ_ALL;
	q->group = group;
	q->wait_ms = wait_ms;
	q->priority = priority;
}

void gatherer_ask(struct sim_client *c)
{
	struct request_sim *q;

	if (!c->conn || c->conn->left || c->state != CLIENT_RUNNING)
		return;
	q = group_open(c);
	if (q && stream_chance(&c->reads, 20))
		client_ask(c, ASK_OTHER, NULL, "CANCEL @t%u", q->number);
	else
		say_group(c);
}

void gatherer_row(struct request_sim *q, struct span line)
{
	int64_t name = reader_name(line);

	if (!is_group(q) || name < 0 || line.n >= sizeof(q->row[0]))
		return;
	q->rows |= 1U << name;
	memcpy(q->row[name], line.p, line.n);
	q->row[name][line.n] = '\0';
}

/* The client relies on all names when it reads the OK behind the rows. */
void gatherer_heard(struct sim_client *c, const struct request_sim *q, struct span line)
{
	if (q->reads == READ_ANY && reader_name(line) >= 0)
		reader_believe(c, q, reader_name(line), line);
	for (int64_t name = 0; name < READ_NAMES; name++)
		if (q->rows >> name & 1)
			reader_believe(c, q, name, span_of(q->row[name]));
}
