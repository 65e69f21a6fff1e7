/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves host names, each lookup in its own thread: the loop never blocks, and a lookup that hangs delays no other. Beyond OFFLOAD_TASKS lookups fail at
 * once. Only forgotten ones can become that many, since each node and each sentinel has one at most. Callbacks come on the loop's thread, never from inside
 * resolver_ask. All functions must be called on the loop's thread.
 */
#ifndef REDIS_RESOLVER_H
#define REDIS_RESOLVER_H

#include "daemon/core/event/event.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 16
#define NAME_POLL_US  (5 * SEC) /* daemons must leave a server within the quarantine of its successor */
#define PATH_POLL_US  SEC
#define REDIAL_US     (10 * SEC)
#define REUSE_US     (5 * SEC) /* a master that was away for that long may have a successor that grants: see What a fail-over can lose in redlockd(8) */

struct addrinfo;
struct event_base;
struct resolver;
struct lookup; /* a lookup under way; owned by the resolver */

struct endpoint {
	struct sockaddr_storage name;
	socklen_t n;
};

struct addresses {
	unsigned count;
	struct endpoint item[ADDRESSES_MAX];
};

/* found->count 0: no address; defect and reason say why. The arguments are borrowed during the call; the lookup is freed after it. */
typedef void resolver_done(void *context, const struct addresses *found, enum defect defect, const char *reason);

/* getaddrinfo(3), or a stand-in for it. */
typedef int resolver_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list);

struct resolver *resolver_new(struct event_base *base, resolver_getaddrinfo *how);
void resolver_free(struct resolver *r); /* forgets all lookups; each getaddrinfo under way ends by itself */
/* Never fails: if no thread can be started, `done` gets that as the reason. */
struct lookup *resolver_ask(struct resolver *r, const char *host, uint16_t port, resolver_done *done, void *context);
void resolver_forget(struct lookup *q); /* `done` will not be called; q may be NULL */

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);
/* Whether host is a numeric address; needs no thread. */
bool addresses_from_number(const char *host, uint16_t port, struct addresses *ret_addresses);
/* Whether no resolver is needed: for the path of a Unix socket, or a numeric address. count 0: the path is too long. path may be NULL. */
bool addresses_are_known(const char *path, const char *host, uint16_t port, struct addresses *ret_addresses);

#endif
