/* SPDX-License-Identifier: BSD-2-Clause */
/* A node goes on in the next process: see carry.h. Not thread-safe. */
#ifndef REDIS_NODE_CARRY_H
#define REDIS_NODE_CARRY_H

#include "daemon/base/fdlist.h"
#include "daemon/redis/node.h"
#include "daemon/redis/parcel.h"

bool node_is_quiet(const struct node *n);
void node_give_up(struct node *n, const char *reason); /* unless it is quiet; calls the sink */

void node_pack(struct node *n, struct node_parcel *p, struct fdlist *fds);
/* Of a node that was not dialled yet. same: its settings are those of the parcel. reload: the scripts are others. */
void node_unpack(struct node *n, const struct node_parcel *p, bool same, bool reload, struct fdlist *fds);
/* Closes what nobody took out of fds, and frees what p points to. links: of each node, in the process that packed. */
void node_parcel_end(struct node_parcel *p, unsigned links, struct fdlist *fds);

#endif
