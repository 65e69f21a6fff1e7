/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /api/v1/snapshot: who asks, and which snapshot answers whom. To make one takes long, so few are made at a time, and requests that ask for the same with
 * the same rights share one that is begun after the last of them has come. The others wait in order.
 */
#ifndef WEB_AUDIENCE_H
#define WEB_AUDIENCE_H

struct evhttp_request;
struct web;

void audience_join(struct web *w, struct evhttp_request *req);
void audiences_end(struct web *w); /* all are answered that the daemon is stopping */

#endif
