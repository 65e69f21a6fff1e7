/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of one node: all go to the same address, and are dialled and closed together. Not thread-safe. */
#ifndef REDIS_LINKS_H
#define REDIS_LINKS_H

#include "daemon/redis/link.h"
#include "daemon/redis/resolver.h"

struct links {
	struct link **item;
	unsigned count;
};

void links_init(struct links *l, unsigned count, struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink);
void links_release(struct links *l); /* answers no calls */
void links_expect(struct links *l, const char *name);
void links_demand_master(struct links *l);
int links_dial(struct links *l, const struct endpoint *to) __attribute__((warn_unused_result)); /* as link_dial; the error of the first link that fails */
void links_close(struct links *l, const char *reason);
bool links_flush(struct links *l, struct instant now, bool at_once);
bool links_agree(const struct links *l); /* all lead to one server */
bool links_wait(const struct links *l); /* for the answer to a command */
struct instant links_answered(const struct links *l); /* the server was alive then, or later */

#endif
