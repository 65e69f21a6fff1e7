/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects again, from time to time, to the server to which a node is connected, shakes hands and leaves. So one is found that serves its connections and would
 * take no new one: its password is another, its user lost a right that only a handshake needs, or it has no place for one more client. And one is found
 * that new connections no longer reach: they lead to another server. Where its name has further addresses, every other connection is to one of these. Of one
 * that cannot be reached nothing is told.
 */
#ifndef REDIS_REDIAL_H
#define REDIS_REDIAL_H

#include "daemon/redis/link.h"
#include "daemon/redis/resolver.h"

struct redial;

struct redial_sink {
	void *context;
	void (*tried)(void *context, enum defect defect, const char *reason); /* DEFECT_NONE: the last one was taken. Else the last two were not */
	void (*reached)(void *context, const char *run_id); /* of the server to which one led; "": it does not say. Borrowed */
};

struct redial *redial_new(struct event_base *base, const struct link_conf *conf, int64_t every_us, unsigned node, const struct redial_sink *sink);
int64_t redial_cert_ends(const struct redial *t); /* as link_cert_ends, of the last connection that was taken */
void redial_free(struct redial *t);
void redial_expect(struct redial *t, const char *name); /* as link_expect */
/* The first one is every_us later, but at once to a further address. all: borrowed until redial_end; what is new there counts from then on. */
void redial_begin(struct redial *t, const struct endpoint *home, const struct addresses *all);
void redial_end(struct redial *t);

#endif
