/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Figures of groups of names: metrics.groups of the configuration has a label and a pattern for each, which is a name, or a beginning of names and one * at its
 * end. A name counts for the first group that it matches. Only the labels are told, so how many figures there are does not depend on what clients do.
 */
#ifndef CORE_NAME_GROUPS_H
#define CORE_NAME_GROUPS_H

#include "daemon/core/event/metric.h"

struct name_group {
	const char *label;
	int64_t answered[RESULT_N], lost;
	struct histogram wait, hold;
	int64_t wait_us, hold_us; /* their sums */
};

struct name_groups; /* NULL: none */

/* text: "label TAB pattern" of each, at most 64, a newline between two; NULL: none. Takes over the figures of the labels that `former` has, and frees that. */
struct name_groups *name_groups_new(const char *text, struct name_groups *former);
void name_groups_free(struct name_groups *g);

unsigned name_groups_count(const struct name_groups *g);
const struct name_group *name_groups_at(const struct name_groups *g, unsigned i);

/* A request for the name was answered so, after that time. */
void name_groups_waited(struct name_groups *g, struct span name, enum result result, int64_t us);
/* A hold has ended after that time. */
void name_groups_held(struct name_groups *g, struct span name, int64_t us);
void name_groups_lost(struct name_groups *g, struct span name);

#endif
