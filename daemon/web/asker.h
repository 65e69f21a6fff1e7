/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An asker is one session of the service on behalf of an HTTP request. It sends lines, and gets each line of the answer in a later pass of the loop. All askers
 * together have a share of each pass, so that the service always has time for its clients. Embedded.
 */
#ifndef WEB_ASKER_H
#define WEB_ASKER_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "daemon/base/peer.h"
#include "proto/proto.h"

#include <sys/queue.h>

struct event;
struct web;

struct asker {
	TAILQ_ENTRY(asker) in_due;
	struct web *web;
	uint64_t session; /* 0: closed */
	struct buf in;
	bool due;         /* in askers.due */
	bool awaits;      /* the service wants to be notified when everything is sent */
	bool hung_up;     /* the service has ended the session */
	size_t most;      /* bytes of lines that may wait to be read; if there are more, the pushes among them are dropped. 0: any number */
	uint64_t dropped; /* pushes that were dropped before the next one that is read */
	/* A line of the answer. It may close the asker. */
	void (*line)(struct asker *a, const struct reply_line *line);
	/* The service has ended the session, and all its lines were delivered. The asker is closed. */
	void (*over)(struct asker *a);
};

struct askers {
	struct asker **slot;
	uint32_t *generation;
	unsigned n, first; /* the number of slots, and the number of the first one */
	TAILQ_HEAD(due_list, asker) due;
	struct event *work;
	struct instant pass_end; /* until when lines are read in this pass of the loop */
};

int askers_init(struct web *w);
void askers_end(struct web *w, enum gone how); /* reports the end to the service and to the owner of each asker */
void askers_silence(struct web *w); /* no callback of the sink follows */
void askers_release(struct web *w);

/* Whether this pass has time for another line to the service. */
bool askers_have_time(const struct web *w);

/* On behalf of this peer. line and over are set. False: all sessions are in use, or the service stops. */
bool asker_open(struct web *w, struct asker *a, const struct peer *peer);
void asker_close(struct asker *a); /* once, or again without effect */
/* A line without its end; format as printf. */
void asker_send(struct asker *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
