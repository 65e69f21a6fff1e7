/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host names to addresses, in one thread of its own that is started with the first name: nothing blocks the loop. Answers come on the
 * loop's thread, never from inside resolver_ask. All functions are called on the loop's thread.
 */
#ifndef REDIS_RESOLVER_H
#define REDIS_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 16

struct addrinfo;
struct event_base;
struct resolver;
struct lookup; /* a question that is under way */

struct endpoint {
	struct sockaddr_storage name;
	socklen_t n;
};

struct addresses {
	unsigned count;
	struct endpoint item[ADDRESSES_MAX];
};

/* found->count is 0 when there is none; reason says why then. Borrowed for the length of the call, the lookup is gone after it. */
typedef void resolver_done(void *context, const struct addresses *found, const char *reason);

/* getaddrinfo(3), or a stand-in for it. */
typedef int resolver_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list);

struct resolver *resolver_new(struct event_base *base, resolver_getaddrinfo *how);
void resolver_free(struct resolver *r); /* questions under way are forgotten; one that hangs is left to end by itself */
struct lookup *resolver_ask(struct resolver *r, const char *host, uint16_t port, resolver_done *done, void *context);
void resolver_forget(struct lookup *q); /* done will not be called; NULL is accepted */

/* For a numeric address no thread is needed. */
bool addresses_from_number(const char *host, uint16_t port, struct addresses *ret_addresses);

#endif
