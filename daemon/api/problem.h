/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the API: a line of the protocol as JSON, or a problem (RFC 9457). */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "proto/proto.h"

struct evhttp_request;

/* The status of a line that answers a request: 200, or that of its error. */
int problem_status(const struct reply_line *line);
/* 200 or 201: its fields; else the problem that it tells. */
void problem_answer(struct evhttp_request *req, int status, const struct reply_line *line);
/* code: of the protocol. */
void problem(struct evhttp_request *req, int status, const char *code, const char *detail);

#endif
