/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the API: a line of the protocol as JSON, or a problem (RFC 9457). */
#include "daemon/api/internal.h"

#include "daemon/web/translate.h"

#include <stdio.h>

#define TYPE_PROBLEM "application/problem+json"

static int status_of_error(struct span code)
{
	static const struct {
		const char *code;
		int status;
	} table[] = {{"NOTFOUND", 404}, {"NOTHELD", 404}, {"LOST", 409}, {"KIND", 409}, {"DEADLOCK", 409}, {"CANCELLED", 409}, {"LIMIT", 422},
	             {"QUORUM", 503}, {"UNAVAILABLE", 503}, {"DRAINING", 503}, {"AUTH", 401}, {"DENIED", 403}, {"TAGINUSE", 500}, {"INTERNAL", 500}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (span_equal(code, span_of(table[i].code)))
			return table[i].status;
	return 400;
}

int problem_status(const struct reply_line *line)
{
	switch (line->kind) {
	case LINE_OK:
		return 200;
	case LINE_BUSY:
		return 423;
	case LINE_TIMEOUT:
		return 408;
	case LINE_ERR:
		return status_of_error(line->code);
	case LINE_ROW:
	case LINE_PUSH:
		break;
	}
	return 500;
}

static void retry_after(struct evhttp_request *req, int64_t ms)
{
	char seconds[24];

	snprintf(seconds, sizeof(seconds), "%lld", (long long)(ms > 0 ? (ms + 999) / 1000 : 1));
	evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", seconds);
}

static void problem_send(struct evhttp_request *req, int status, struct span code, struct span detail, const struct reply_line *line)
{
	struct buf out;

	buf_init(&out);
	buf_printf(&out, "{\"type\":\"about:blank\",\"status\":%d", status);
	notation_member(&out, SPAN("title"), span_of(reason_of(status)));
	notation_member(&out, SPAN("code"), code);
	notation_member(&out, SPAN("detail"), detail);
	for (unsigned i = 0; line && i < line->fields; i++)
		notation_member(&out, line->field[i].name, line->field[i].value);
	notation_raw(&out, "}\n");
	if (status == 503 || status == 429 || status == 423)
		retry_after(req, line ? reply_number(line, "retry_ms", 0) : 0);
	if (status == 401)
		evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate", "Bearer realm=\"redlockd\"");
	answer(req, status, TYPE_PROBLEM, buf_begin(&out), buf_length(&out), NULL);
	buf_release(&out);
}

void problem(struct evhttp_request *req, int status, const char *code, const char *detail)
{
	problem_send(req, status, span_of(code), span_of(detail), NULL);
}

void problem_answer(struct evhttp_request *req, int status, const struct reply_line *line)
{
	struct buf out;

	if (line->kind == LINE_BUSY) {
		problem_send(req, status, SPAN("BUSY"), SPAN("somebody else holds it"), line);
	} else if (line->kind == LINE_TIMEOUT) {
		problem_send(req, status, SPAN("TIMEOUT"), SPAN("the wait is over, and somebody else holds it"), line);
	} else if (line->kind != LINE_OK) {
		problem_send(req, status, line->code, line->text, line);
	} else {
		buf_init(&out);
		notation_line(&out, line);
		notation_raw(&out, "\n");
		answer(req, status, TYPE_JSON, buf_begin(&out), buf_length(&out), NULL);
		buf_release(&out);
	}
}
