/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP that locks: what the listener of listen.api serves (docs/http.md, docs/openapi.yaml). It translates, and decides nothing: each request becomes one line
 * of the line protocol, and the line that answers it becomes JSON.
 *
 *   POST   /v1/sessions                              HELLO 1 heartbeat= grace= …      201, and where the session is
 *   PUT    /v1/sessions/SESSION                      PING
 *   DELETE /v1/sessions/SESSION                      QUIT
 *   POST   /v1/sessions/SESSION/locks/NAME           LOCK NAME count=1 wait= …
 *   GET    /v1/sessions/SESSION/locks/NAME           CHECK NAME …
 *   PUT    /v1/sessions/SESSION/locks/NAME           EXTEND NAME ttl= …
 *   DELETE /v1/sessions/SESSION/locks/NAME           UNLOCK NAME count=0 fence= …
 *   GET    /v1/sessions/SESSION/events               SUBSCRIBE, and then its pushes as server-sent events
 *
 * Sessions. SESSION is NUMBER-SECRET, from the answer of HELLO: nobody can guess it, and it is never logged. A client that knows it may act for the session.
 * While the session is known here, only the client that made or resumed it last, by uid or certificate, may use it. To others it is gone. It is a session of
 * the service, not a connection: requests may come over any connection. It has a heartbeat and a grace. Each request is a sign of life. So is one that waits,
 * while its connection stays open (a PING is sent for it). An open stream of events is none, because the kernel keeps it open for a client that is stuck.
 * Without a sign of life for a heartbeat the service cuts the session off. It ends when its grace is over too. A request before that, or after a restart of the
 * daemon, resumes it, whatever the uid or the certificate: RESUME asks for each SESSION that is not known here, and 410 reports that it is gone. A session of
 * the line protocol keeps the heartbeat that it has; without one it gets that of a POST.
 *
 * Order. The requests of a session go to the service in the order of their arrival, each with a tag. Each is answered when the service answers it. So one that
 * waits does not delay the others. A client that needs an order must await each answer.
 *
 * Waiting. A POST with wait= is answered when the lock is granted, or the time is over. If its connection ends before that, CANCEL withdraws it. If the grant
 * was faster, so that its client never hears of it, it is given back (UNLOCK with its fence). But if the session asks for the same lock of the same owner
 * again, that request is answered with the grant. So a grant whose answer was lost is found again, too.
 *
 * Repeating. An owner holds a lock once: POST is LOCK with count=1, DELETE is UNLOCK with count=0. So each may be repeated, and 200 reports the state.
 *
 * Events. LOST, RISK, SAFE, CONTENDED and DRAIN, numbered from the time when the session came here, in microseconds. The last EVENTS_KEPT of a session are
 * kept. A stream first sends those that came while there was none: all, or those after Last-Event-ID. A newer stream of a session ends the earlier one. A
 * request for the lock reports its loss, too.
 *
 * Limits. A body has 8 KiB at most. There are API_SESSIONS sessions and API_CONNECTIONS connections, half of which may wait. A peer that has VISITS_RATIO times
 * as many of these as are left gets no further one. A stream that has EVENTS_UNSENT unread is ended, and may be opened again. The limits of the service hold
 * for these sessions as for all others.
 *
 * Errors are application/problem+json (RFC 9457): "code" is that of the protocol, "detail" its text. 423 BUSY, 408 TIMEOUT, 409 DEADLOCK, KIND, CANCELLED and
 * LOST, 404 NOTHELD, 410 a session that is gone, 503 with Retry-After QUORUM, UNAVAILABLE and DRAINING, 422 LIMIT, 429 a limit of this listener, 400 the rest.
 *
 * Browsers. A page of another site must not lock. A request with an Origin is refused, and so is a foreign Host. A body must be application/json, which no form
 * sends. A token or a client certificate is always required.
 */
#ifndef API_API_H
#define API_API_H

#include "daemon/web/web.h"

extern const struct web_room api_room;

#endif
