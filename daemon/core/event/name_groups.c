/* SPDX-License-Identifier: BSD-2-Clause */
/* See name_groups.h. */
#include "daemon/core/event/name_groups.h"

#include "daemon/base/mem.h"
#include "daemon/base/pattern.h"

#include <assert.h>
#include <string.h>

#define GROUPS_MOST 64

struct group {
	char *pattern;
	size_t fixed; /* so many bytes of it stand before the first star */
};

/* The patterns lie beside each other, and a name is compared with those alone that may begin as it does. */
struct name_groups {
	unsigned count;
	uint64_t may[256]; /* by the first byte of a name, a bit for each group */
	struct group *group;
	struct name_group *figures;
};

static unsigned lines_of(const char *text)
{
	unsigned n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void group_take(struct name_groups *g, const char *line, size_t n, const struct name_groups *former)
{
	const char *tab = memchr(line, '\t', n), *pattern = tab + 1;
	struct group *group = &g->group[g->count];
	struct name_group *figures = &g->figures[g->count++];
	char *label = mem_copy(line, (size_t)(tab - line));

	for (unsigned i = 0; i < name_groups_count(former); i++)
		if (strcmp(former->figures[i].label, label) == 0)
			*figures = former->figures[i];
	figures->label = label;
	group->pattern = mem_copy(pattern, n - (size_t)(pattern - line));
	group->fixed = strcspn(group->pattern, "*");
	for (unsigned byte = 0; byte < 256; byte++)
		if (group->fixed == 0 || (unsigned char)group->pattern[0] == byte)
			g->may[byte] |= UINT64_C(1) << (g->count - 1);
}

struct name_groups *name_groups_new(const char *text, struct name_groups *former)
{
	struct name_groups *g = text ? mem_alloc(sizeof(*g)) : NULL;

	if (text) {
		g->group = mem_alloc(lines_of(text) * sizeof(*g->group));
		g->figures = mem_alloc(lines_of(text) * sizeof(*g->figures));
	}
	for (size_t n; text && *text; text += n + (text[n] == '\n')) {
		assert(g->count < GROUPS_MOST);
		n = strcspn(text, "\n");
		group_take(g, text, n, former);
	}
	name_groups_free(former);
	return g;
}

void name_groups_free(struct name_groups *g)
{
	for (unsigned i = 0; i < name_groups_count(g); i++) {
		mem_free(g->figures[i].label);
		mem_free(g->group[i].pattern);
	}
	if (g) {
		mem_free(g->group);
		mem_free(g->figures);
	}
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

static bool group_has(const struct group *group, struct span name)
{
	return name.n >= group->fixed && memcmp(name.p, group->pattern, group->fixed) == 0 &&
	       pattern_matches(group->pattern + group->fixed, (struct span){name.p + group->fixed, name.n - group->fixed});
}

/* NULL: none. */
static struct name_group *group_of_name(struct name_groups *g, struct span name)
{
	for (uint64_t left = g->may[(unsigned char)*name.p]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (group_has(&g->group[i], name))
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
