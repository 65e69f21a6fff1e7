/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects from time to time to the server of a node, completes the handshake and leaves. So it finds a server that serves its connections but would accept no
 * new one: its password has changed, its user lost a right that only a handshake needs, or it has no room for one more client. It also finds a server that new
 * connections no longer reach, because they lead to another one. If the name has further addresses, every other connection goes to one of these. A further
 * address that cannot be reached is not reported.
 */
#ifndef REDIS_REDIAL_H
#define REDIS_REDIAL_H

#include "daemon/redis/link.h"
#include "daemon/redis/resolver.h"

struct redial;

struct redial_sink {
	void *context;
	void (*tried)(void *context, enum defect defect, const char *reason); /* DEFECT_NONE: the last try was accepted. Else the last two failed */
	void (*reached)(void *context, const char *run_id); /* of the server that one has reached; "": not given. Borrowed */
};

struct redial *redial_new(struct event_base *base, const struct link_conf *conf, int64_t every_us, unsigned node, const struct redial_sink *sink);
int64_t redial_cert_ends(const struct redial *t); /* as link_cert_ends, of the last connection that was accepted */
void redial_free(struct redial *t);
void redial_expect(struct redial *t, const char *name); /* as link_expect */
/* The first connection comes after every_us, but at once to a further address. all: borrowed until redial_end; changes to it count. */
void redial_begin(struct redial *t, const struct endpoint *home, const struct addresses *all);
void redial_end(struct redial *t);

#endif
