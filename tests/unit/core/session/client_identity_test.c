/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/session/client.c: the client of a session, for people. */
#include "daemon/core/session/client.h"

#include <check.h>
#include <string.h>

static void is_told_as(const struct session *s, const char *expected)
{
	char who[WHO_MAX];
	size_t n = session_who(s, who);

	ck_assert_msg(span_equal((struct span){who, n}, span_of(expected)), "%.*s instead of %s", (int)n, who, expected);
}

TEST(a_client_is_its_label_and_its_process_its_address_or_its_session)
{
	static char label[] = "worker 7", address[] = "10.0.0.5:51234";

	is_told_as(&(struct session){.is_unix = true, .at_unix = true, .pid = 4711, .uid = 0}, "pid=4711 uid=0");
	is_told_as(&(struct session){.is_unix = true, .at_unix = true, .label = label, .pid = 1, .uid = 1000}, "worker 7 pid=1 uid=1000");
	is_told_as(&(struct session){.address = address}, address);
	is_told_as(&(struct session){.label = label, .address = address}, "worker 7 10.0.0.5:51234");
	is_told_as(&(struct session){.at_unix = true}, "unix");
	is_told_as(&(struct session){.serial = 3}, "session=3");
	is_told_as(&(struct session){.label = label, .serial = 12}, "worker 7 session=12");
}

TEST(the_longest_label_and_the_longest_numbers_are_told_whole)
{
	char label[257], expected[WHO_MAX] = "";

	memset(label, 'w', sizeof(label) - 1);
	label[sizeof(label) - 1] = '\0';
	strcat(strcat(expected, label), " pid=-9223372036854775808 uid=-9223372036854775808");
	is_told_as(&(struct session){.is_unix = true, .label = label, .pid = INT64_MIN, .uid = INT64_MIN}, expected);
}

TEST(the_subject_stands_behind_the_address)
{
	static char both[] = "10.0.0.5:51234\0CN=db3";
	struct session shown = {.address = both, .has_subject = true}, hidden = {.address = both};

	is_told_as(&shown, "10.0.0.5:51234");
	ck_assert(span_equal(session_subject(&shown), SPAN("CN=db3")));
	ck_assert_uint_eq(session_subject(&hidden).n, 0);
	ck_assert_uint_eq(session_subject(&(struct session){.at_unix = true}).n, 0);
}
