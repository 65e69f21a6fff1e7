/* SPDX-License-Identifier: BSD-2-Clause */
/* What upstream.h and the nodes below it share: where a server is, who is notified, and what failed. */
#ifndef REDIS_UPSTREAM_TYPES_H
#define REDIS_UPSTREAM_TYPES_H

#include "daemon/core/event/event.h"

struct upstream_host {
	const char *host; /* name or address */
	uint16_t port;
};

struct upstream_address {
	const char *label; /* as configured: for logs and LIST nodes */
	const char *master; /* the name of the server for these sentinels, which know its address; NULL: path or host has it */
	const struct upstream_host *sentinel;
	unsigned sentinels;
	const char *path;  /* Unix socket; or NULL */
	const char *host;  /* name or address; resolved by a thread, the last good answer is kept. Of a master: what sentinels last gave; NULL: unknown */
	uint16_t port;
	const char *run_id;   /* of the last server, if sentinels named it; NULL or "": not known */
	struct instant answered_at; /* when that server last answered */
};

struct upstream_sink {
	void *context;
	void (*up)(void *context, unsigned node, const char *address); /* where it is, according to the sentinels; "": as configured */
	/* address: "", or the address of the server that has replaced it */
	void (*down)(void *context, unsigned node, enum defect defect, const char *reason, const char *address);
	void (*answer)(void *context, const struct answer *answer); /* borrowed during the call */
	/* Published for this daemon, see subscriber.h. May be lost, repeated or late. May be NULL if daemon_id is. */
	void (*message)(void *context, unsigned node, char what, struct span name);
	/* The node is up, but publishes nothing for this daemon: why, for people; repeated at each attempt. "": it does again. May be NULL if daemon_id is. */
	void (*subscribed)(void *context, unsigned node, enum defect defect, const char *refusal);
	/*
	 * The node is up, but its sentinels are silent or differ, or its name leads to several servers: why; may be repeated. "": neither. address: where it is
	 * now, according to the sentinels; "": as last reported. May be NULL.
	 */
	void (*unwatched)(void *context, unsigned node, enum defect defect, const char *reason, const char *address);
};

/* Since the daemon was started; a restart in place keeps the counts. */
struct upstream_failures {
	uint64_t broken;   /* times that a node that was up went down */
	uint64_t attempts; /* failed attempts to connect to one of its addresses */
};

#endif
