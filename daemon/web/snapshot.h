/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /api/v1/snapshot: stores, figures, and a page of locks with their holders and waiters, as one JSON object. */
#ifndef WEB_SNAPSHOT_H
#define WEB_SNAPSHOT_H

struct web;
struct evhttp_request;

void snapshot_begin(struct web *w, struct evhttp_request *req);

#endif
