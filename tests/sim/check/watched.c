/* SPDX-License-Identifier: BSD-2-Clause */
/* What WATCH and SUBSCRIBE must tell (S28). Of the names that readers share it is followed which sessions hold them, as far as their watcher was told. */
#include "tests/sim/world/world.h"

void watched_anew(struct conn *c)
{
	memset(c->watched, 0, sizeof(c->watched));
	for (int64_t name = 0; name < READ_NAMES; name++)
		c->watched_reads[name].count = 0;
}

static bool is_kind(struct span line, const char *kind)
{
	return span_equal(line_field(line, "kind"), span_of(kind));
}

static void told_of_another(const struct conn *c, struct span line)
{
	checker_fail(c->world, INVARIANT_S28, line_name(line), "client %u watches, was told of another grant and not of its end, and is told: %.*s",
		     c->client->index, (int)line.n, line.p);
}

/* A hold that is downgraded is told again, as shared. Whoever holds the name alone does so beside no other session. */
static void read_granted(struct conn *c, struct watched_reads *r, struct span line)
{
	struct watched_read now = {.session = line_int(line, "session"), .fence = line_int(line, "fence"),
	                           .shared = span_equal(line_field(line, "mode"), SPAN("shared"))};
	unsigned at = r->count;

	for (unsigned i = 0; i < r->count; i++) {
		if (r->hold[i].session == now.session)
			at = i;
		else if (!now.shared || !r->hold[i].shared)
			told_of_another(c, line);
	}
	if (at < READERS_WATCHED)
		r->hold[at] = now;
	if (at == r->count && r->count < READERS_WATCHED)
		r->count++;
}

static void read_ended(struct conn *c, struct watched_reads *r, struct span line)
{
	for (unsigned i = 0; i < r->count; i++) {
		if (r->hold[i].session != line_int(line, "session"))
			continue;
		if (r->hold[i].fence != line_int(line, "fence"))
			told_of_another(c, line);
		r->hold[i] = r->hold[--r->count];
		return;
	}
}

void watched_event(struct conn *c, struct span line)
{
	int64_t name = line_name(line), read = reader_name(line), fence = line_int(line, "fence");

	if (is_kind(line, "waiting"))
		return;
	if (read >= 0 && is_kind(line, "granted"))
		read_granted(c, &c->watched_reads[read], line);
	else if (read >= 0)
		read_ended(c, &c->watched_reads[read], line);
	if (name < 0)
		return;
	if (is_kind(line, "granted") ? c->watched[name] != 0 : c->watched[name] != 0 && c->watched[name] != fence)
		told_of_another(c, line);
	c->watched[name] = is_kind(line, "granted") ? fence : 0;
}

/* Nobody is told who waits for a lock before it is told that it has the lock. */
void watched_contended(struct conn *c, struct span line)
{
	int64_t name = line_name(line), read = reader_name(line);

	if (!span_equal(line_word(line, 1), SPAN("CONTENDED")) || c->resumed || is_of_job(line))
		return;
	if ((read >= 0 && c->read_count[read] == 0) || (name >= 0 && c->account[line_owner(line)][name].fence != line_int(line, "fence")))
		checker_fail(c->world, INVARIANT_S28, name, "client %u was not told that it holds the lock, and is told: %.*s", c->client->index, (int)line.n,
			     line.p);
}
