/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a line that a client reads, and as a value that the daemon writes. What the client reads lies inside the line. What the daemon writes is one
 * printable line within its bound, and is read as the same value, or as none where the value did not fit.
 */
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"

static bool inside(struct span span, const char *line, size_t n)
{
	return span.n == 0 || (span.p >= line && span.p + span.n <= line + n);
}

static void check_read(struct span bytes)
{
	char *line = malloc(bytes.n ? bytes.n : 1);
	struct reply_line reply;

	PROMISE(line != NULL);
	memcpy(line, bytes.p, bytes.n);
	if (reply_parse(line, bytes.n, &reply) == 0) {
		PROMISE(inside(reply.tag, line, bytes.n) && inside(reply.code, line, bytes.n) &&
			inside(reply.text, line, bytes.n));
		PROMISE(reply.fields <= REPLY_FIELDS_MAX);
		for (unsigned i = 0; i < reply.fields; i++)
			PROMISE(inside(reply.field[i].name, line, bytes.n) && inside(reply.field[i].value, line, bytes.n));
		reply_number(&reply, "fence", 0);
	}
	free(line);
}

static size_t check_line(const char *out, size_t n)
{
	PROMISE(n >= 1 && n <= REPLY_MAX && out[n - 1] == '\n');
	for (size_t i = 0; i < n - 1; i++)
		PROMISE((unsigned char)out[i] >= ' ' && out[i] != 0x7f);
	return n - 1;
}

static void check_written(struct span value)
{
	char *out = malloc(REPLY_MAX);
	struct reply reply;
	struct reply_line line;
	struct span name;

	PROMISE(out != NULL);
	reply_begin(&reply, out, SPAN("t"), "OK");
	reply_text(&reply, "name", value);
	reply_int(&reply, "fence", 17);
	PROMISE(reply_parse(out, check_line(out, reply_end(&reply)), &line) == 0);
	name = reply_find(&line, "name");
	PROMISE(name.p ? span_equal(name, value) : value.n > REPLY_MAX / 4 - 64);
	PROMISE(reply_number(&line, "fence", 0) == 17 || value.n > REPLY_MAX / 4 - 64);
	free(out);
}

static void check_error(struct span value)
{
	char *out = malloc(REPLY_MAX), *text = malloc(value.n + 1);
	struct reply reply;
	struct reply_line line;

	PROMISE(out && text);
	memcpy(text, value.p, value.n);
	text[value.n] = '\0';
	reply_error(&reply, out, SPAN(""), ERROR_INTERNAL, text);
	PROMISE(reply_parse(out, check_line(out, reply_end(&reply)), &line) == 0);
	PROMISE(line.kind == LINE_ERR && span_equal(line.code, SPAN("INTERNAL")));
	free(text);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {n ? (const char *)data : "", n};

	check_read(bytes);
	check_written(bytes);
	check_error(bytes);
	return 0;
}
