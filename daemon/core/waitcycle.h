/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Of the owners that a reduced wait graph leaves stuck: who waits for itself through others, which of these is refused, and what it is told. Each takes time
 * that grows with the number of wants and holds.
 *
 * Owners that wait for each other are a strongly connected component of the graph; each of them is on some cycle.
 * Source: Tarjan, Depth-First Search and Linear Graph Algorithms (1972).
 */
#ifndef CORE_WAITCYCLE_H
#define CORE_WAITCYCLE_H

#include "daemon/core/waitgraph.h"

/* A victim of each component with more than one owner: the one with the largest place. */
void cycle_find_victims(struct waitgraph *g);

/* Whether a name may be shown: else dots stand in its place. */
typedef bool cycle_shows(const void *about, struct span name);

/*
 * A shortest cycle of this stuck owner: "a@h1<-b@h2<-a@h1", or "a<-b<-a" where the host is empty. The first name is what it waits for, with the host of the
 * owner that is in the way; that one waits for the next name, and so on. What it waits for itself is always shown. Returns the bytes written, at most size,
 * which is at least 2000; 0: it is on no cycle. ret_want: the want that the cycle begins with.
 */
size_t cycle_tell(struct waitgraph *g, unsigned owner, cycle_shows *shows, const void *about, char *out, size_t size, const struct graph_want **ret_want);

#endif
