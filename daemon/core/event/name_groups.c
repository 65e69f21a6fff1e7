/* SPDX-License-Identifier: BSD-2-Clause */
/* See name_groups.h. */
#include "daemon/core/event/name_groups.h"

#include "daemon/base/mem.h"

#include <assert.h>
#include <string.h>

#define GROUPS_MOST 64

/* It has the name, or each name that begins so. */
struct group {
	struct span text;
	bool begins;
};

struct name_groups {
	unsigned count;
	uint64_t may[256]; /* by the first byte of a name, a bit for each group that may have it */
	char *text; /* of all labels and patterns */
	struct group group[GROUPS_MOST];
	struct name_group figures[GROUPS_MOST];
};

static void group_take(struct name_groups *g, char *line, size_t n, const struct name_groups *former)
{
	char *tab = memchr(line, '\t', n);
	struct span pattern = {tab + 1, n - (size_t)(tab + 1 - line)};
	bool begins = pattern.p[pattern.n - 1] == '*';
	struct name_group *figures = &g->figures[g->count];

	*tab = '\0';
	for (unsigned i = 0; i < name_groups_count(former); i++)
		if (strcmp(former->figures[i].label, line) == 0)
			*figures = former->figures[i];
	figures->label = line;
	for (unsigned byte = 0; byte < 256; byte++)
		if (*pattern.p == '*' || (unsigned char)*pattern.p == byte)
			g->may[byte] |= UINT64_C(1) << g->count;
	g->group[g->count++] = (struct group){{pattern.p, pattern.n - begins}, begins};
}

struct name_groups *name_groups_new(const char *text, struct name_groups *former)
{
	struct name_groups *g = text ? mem_alloc(sizeof(*g)) : NULL;
	char *line = g ? g->text = mem_copy(text, strlen(text)) : NULL;

	for (size_t n; line && *line; line += n + (line[n] == '\n')) {
		assert(g->count < GROUPS_MOST);
		n = strcspn(line, "\n");
		group_take(g, line, n, former);
	}
	name_groups_free(former);
	return g;
}

void name_groups_free(struct name_groups *g)
{
	if (g)
		mem_free(g->text);
	mem_free(g);
}

unsigned name_groups_count(const struct name_groups *g)
{
	return g ? g->count : 0;
}

const struct name_group *name_groups_at(const struct name_groups *g, unsigned i)
{
	return &g->figures[i];
}

/* NULL: none. */
static struct name_group *group_of_name(struct name_groups *g, struct span name)
{
	for (uint64_t left = g->may[(unsigned char)*name.p]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct group *group = &g->group[i];

		if (group->begins ? span_starts(name, group->text) : span_equal(name, group->text))
			return &g->figures[i];
	}
	return NULL;
}

void name_groups_waited(struct name_groups *g, struct span name, enum result result, int64_t us)
{
	struct name_group *of = group_of_name(g, name);

	if (!of)
		return;
	of->answered[result]++;
	histogram_add(&of->wait, us);
	of->wait_us += us;
}

void name_groups_held(struct name_groups *g, struct span name, int64_t us)
{
	struct name_group *of = group_of_name(g, name);

	if (!of)
		return;
	histogram_add(&of->hold, us);
	of->hold_us += us;
}

void name_groups_lost(struct name_groups *g, struct span name)
{
	struct name_group *of = group_of_name(g, name);

	if (of)
		of->lost++;
}
