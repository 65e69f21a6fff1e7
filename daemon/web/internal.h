/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the web listener: what its files share. */
#ifndef WEB_INTERNAL_H
#define WEB_INTERNAL_H

#include "daemon/net/tcp_listeners.h"
#include "daemon/web/asker.h"
#include "daemon/web/visits.h"
#include "daemon/web/web.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#define STREAMS_MOST 32

struct web {
	struct event_base *base;
	struct evhttp *http;
	struct web_sink sink;
	const struct web_room *room; /* NULL: the page */
	void *context;               /* of the room */
	struct ssl_ctx_st *tls;      /* NULL: plain */
	char *path, *host, *hosts, *token, *metrics_token;
	uint16_t port;
	struct listener listener[LISTENER_ADDRESSES_MAX];
	unsigned listeners;
	struct listener_access access;
	int trouble; /* that is in the log: why its Unix socket is not there */
	struct visits visits;
	struct askers askers;
	TAILQ_HEAD(, audience) audiences;
	unsigned guests;     /* requests of all audiences */
	unsigned being_made; /* snapshots */
	size_t snapshots;    /* bytes of those that are being made */
	struct shared *figures; /* the text of /metrics of this pass of the loop; NULL: nobody has asked for it yet */
	struct instant requests_end; /* when this pass of the loop is cut, so that no request delays others */
	TAILQ_HEAD(, stream) streams;
	unsigned streams_n;
	struct event *beat; /* once a second, while there are streams */
	bool stopping;
	bool paused;          /* for a restart */
};

#endif
