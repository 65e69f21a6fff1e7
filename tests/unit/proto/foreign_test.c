/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/foreign.c. */
#include "proto/foreign.h"

#include "proto/proto.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *line;
	size_t n; /* 0: all of it */
	enum foreign foreign;
} greeting_table[] = {
	{"POST / HTTP/1.1\r", 0, FOREIGN_HTTP},
	{"post /x http/1.1", 0, FOREIGN_HTTP},
	{"ANY-METHOD * HTTP/3", 0, FOREIGN_HTTP},
	{"DELETE\t/aaaa", 0, FOREIGN_HTTP},
	{"TRACE\v/ HTTP/1.1", 0, FOREIGN_HTTP},
	{" GET / HTTP/1.1", 0, FOREIGN_HTTP},
	{"CONNECT a:1 HTTP/1.1", 0, FOREIGN_HTTP},
	{"PRI * HTTP/2.0", 0, FOREIGN_HTTP},
	{"patch https://x/aaaa", 0, FOREIGN_HTTP},
	{"GET key", 0, FOREIGN_NONE},
	{"POST", 0, FOREIGN_NONE},
	{"HTTP/1.1", 0, FOREIGN_NONE},
	{"HTTP/1.1 200 OK", 0, FOREIGN_NONE},
	{"a HTTP/", 0, FOREIGN_NONE},
	{"Host: x", 0, FOREIGN_FIELD},
	{"sec-ch-ua:x", 0, FOREIGN_FIELD},
	{"x:", 0, FOREIGN_FIELD},
	{":x", 0, FOREIGN_NONE},
	{"a b: c", 0, FOREIGN_NONE},
	{"@a:b PING", 0, FOREIGN_NONE},
	{"\x16\x03\x01", 0, FOREIGN_TLS},
	{"\x16", 0, FOREIGN_TLS},
	{"SSH-2.0-OpenSSH_9.2\r", 0, FOREIGN_SSH},
	{"*1\r", 0, FOREIGN_RESP},
	{"$4", 0, FOREIGN_RESP},
	{"*", 0, FOREIGN_NONE},
	{"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r", 0, FOREIGN_PROXY},
	{"PROXY UNKNOWN", 0, FOREIGN_PROXY},
	{"\0\r", 2, FOREIGN_PROXY},
	{"\0", 1, FOREIGN_PROXY},
	{"\0x", 2, FOREIGN_NONE},
	{"", 0, FOREIGN_NONE},
	{"LOKC a", 0, FOREIGN_NONE},
	{"LOCK a wait=5s", 0, FOREIGN_NONE},
};

LOOP_TEST(each_greeting_is_known, (int)(sizeof(greeting_table) / sizeof(greeting_table[0])))
{
	const char *line = greeting_table[_i].line;
	size_t n = greeting_table[_i].n ? greeting_table[_i].n : strlen(line);
	enum foreign foreign = foreign_of(line, n);

	ck_assert_msg(foreign == greeting_table[_i].foreign, "%s: %d", line, (int)foreign);
	if (foreign != FOREIGN_NONE)
		ck_assert_ptr_nonnull(foreign_name(foreign));
}

/* No verb is known as foreign by how it begins, alone or before the form of its words. */
LOOP_TEST(no_request_is_foreign, VERB_N)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s %s", command_table[_i].word, command_table[_i].words ? command_table[_i].words : "");

	ck_assert_int_eq(foreign_of(line, (size_t)n), FOREIGN_NONE);
	n = snprintf(line, sizeof(line), "%s", command_table[_i].word);
	ck_assert_int_eq(foreign_of(line, (size_t)n), FOREIGN_NONE);
}
