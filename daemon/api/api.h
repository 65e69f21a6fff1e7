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
 * Sessions. SESSION is NUMBER-SECRET, as HELLO has answered them: nobody guesses it, and nothing logs it. Who knows it may act for the session. While the
 * session is known here, that must be the client that made it or took it up last, by uid or certificate; to others it is a session that is gone. It is a
 * session of the service, and no connection: requests come over any connection. It has a heartbeat and a grace. Each request is a sign of life; so is one that
 * waits, as long as its connection stands (a PING goes out for it). An open stream of events is none, because the kernel keeps it open for a client that is
 * stuck. Without a sign of life for a heartbeat the service cuts the session off, and it ends when its grace is over too. Whoever comes before that, or after a
 * restart of the daemon, is taken to it by RESUME, whatever the uid or the certificate: a SESSION that is not known here is asked for so, and 410 says that it
 * is gone. A session of the line protocol keeps the heartbeat that it has; without one it gets that of a POST.
 *
 * Order. The requests of a session go to the service in the order in which they have come, each with a tag, and each is answered when the service answers it.
 * So one that waits keeps none of the others; a client that needs an order awaits each answer.
 *
 * Waiting. A POST with wait= is answered when the lock is granted, or the time is over. If its connection ends before, CANCEL withdraws it. If the grant was
 * faster, so that nobody hears of it, it is given back (UNLOCK with its fence), unless the session asks for the same lock of the same owner again: that
 * request is answered with the grant. A grant whose answer is lost on its way is found again in this way, too.
 *
 * Repeating. A lock is held once by an owner: POST is LOCK with count=1, DELETE is UNLOCK with count=0, so each may be repeated, and 200 says what is so.
 *
 * Events. LOST, RISK, SAFE, CONTENDED and DRAIN, numbered from the time when the session came here, in microseconds. The last EVENTS_KEPT of a session are
 * kept, so that a stream tells first what came while there was none: all, or those after Last-Event-ID. A newer stream of a session ends the one before. A loss
 * is told as well by whoever asks for the lock.
 *
 * Limits. A body has 8 KiB. There are API_SESSIONS sessions and API_CONNECTIONS connections, half of which may wait; of each of these a peer gets no further
 * one once it has VISITS_RATIO times as many as are left. A stream that has EVENTS_UNSENT unread is ended, and may come again. The limits of the service hold
 * for these sessions as for all others.
 *
 * Errors are application/problem+json (RFC 9457): "code" is that of the protocol, "detail" its text. 423 BUSY, 408 TIMEOUT, 409 DEADLOCK, KIND, CANCELLED and
 * LOST, 404 NOTHELD, 410 a session that is gone, 503 with Retry-After QUORUM, UNAVAILABLE and DRAINING, 422 LIMIT, 429 a limit of this listener, 400 the rest.
 *
 * Browsers. A page of another site must not lock: a request with an Origin is refused, so is a Host that is not ours, a body must be application/json, which
 * no form sends, and a token or a client certificate is always needed.
 */
#ifndef API_API_H
#define API_API_H

#include "daemon/web/web.h"

extern const struct web_room api_room;

#endif
