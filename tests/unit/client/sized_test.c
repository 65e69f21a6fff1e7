/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/conn.c: programs that were compiled with structs of another version. */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* As a program of another version has them. */
struct options_before {
	size_t size;
	int64_t wait_ms, ttl_ms;
};

struct options_later {
	struct redlock_options known;
	int64_t new_ms;
};

struct page_before {
	size_t size;
	const char *prefix;
	int64_t limit, more;
};

/* Programs are compiled with these places: a field that is new comes behind the others, and not into the gap behind the last one. */
#define PLACE(type, field, at) _Static_assert(offsetof(struct redlock_##type, field) == (at), #type " " #field)
#define ENDS(type, at)         _Static_assert(sizeof(struct redlock_##type) == (at), #type)
#if __SIZEOF_POINTER__ == 8
PLACE(options, wait_ms, 8);
PLACE(options, no_renew, 24);
PLACE(options, note, 32);
PLACE(options, slots, 48);
PLACE(options, delay_ms, 56);
PLACE(options, cancellable, 64);
PLACE(options, trace, 72);
ENDS(options, 80);
PLACE(session, heartbeat_ms, 24);
ENDS(session, 32);
PLACE(tls, server_name, 32);
ENDS(tls, 40);
PLACE(unlocking, sync, 16);
ENDS(unlocking, 24);
PLACE(deferral, id, 24);
ENDS(deferral, 32);
PLACE(view, former, 9);
ENDS(view, 16);
PLACE(page, after, 40);
ENDS(page, 560);
ENDS(grant, 40);
ENDS(job, 632);
ENDS(rate, 32);
#endif

static struct scripted_session s;

static const struct redlock_options *as_options(const void *other)
{
	return other;
}

TEST(a_shorter_struct_has_the_defaults_of_what_it_lacks)
{
	struct {
		struct options_before options;
		char behind[sizeof(struct redlock_options)];
	} memory = {.options = {.size = sizeof(struct options_before), .wait_ms = 5000, .ttl_ms = 3000}};

	memset(memory.behind, 0xff, sizeof(memory.behind));
	scripted_session_open(&s, HELLO "< LOCK n wait=5000ms ttl=3000ms count=1$\n> " GRANT "\n< CHECK n$\n> " CHECKED "\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", as_options(&memory.options), &s.grant), 0);
	scripted_session_end(&s);
}

static void counted(void *arg, const struct redlock_line *row)
{
	*(unsigned *)arg += redlock_line_find(row, "name").n > 0;
}

TEST(nothing_is_written_behind_a_shorter_struct)
{
	struct {
		struct page_before page;
		char behind[sizeof(struct redlock_page)];
	} memory = {.page = {.size = sizeof(struct page_before), .prefix = "a", .limit = 2}};
	struct redlock_page *page;
	void *pointer = &memory.page;
	unsigned rows = 0;

	page = pointer;
	memset(memory.behind, 0x5a, sizeof(memory.behind));
	scripted_session_open(&s, HELLO "< LIST locks limit=2 prefix=a$\n> * name=a1\n> * name=a2\n> OK n=2 more=7\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_LOCKS, page, counted, &rows), 0);
	ck_assert_uint_eq(rows, 2);
	ck_assert_int_eq(memory.page.more, 7);
	ck_assert_uint_eq(memory.page.size, sizeof(struct page_before));
	for (size_t i = 0; i < sizeof(memory.behind); i++)
		ck_assert_int_eq(memory.behind[i], 0x5a);
	scripted_session_end(&s);
}

TEST(a_longer_struct_is_taken_as_far_as_the_library_knows_it)
{
	struct options_later options = {.known = {.size = sizeof(options), .wait_ms = 5000}};

	scripted_session_open(&s, HELLO "< LOCK n wait=5000ms count=1$\n> " GRANT "\n< CHECK n$\n> " CHECKED "\n" "< PING$\n> OK\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &options.known, &s.grant), 0);
	options.new_ms = 1;
	ck_assert_int_eq(redlock_lock(s.c, "m", &options.known, &s.grant), -EINVAL);
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(s.c), "a later libredlock"));
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

TEST(a_struct_without_its_size_is_refused_by_every_call)
{
	struct redlock_options options = {.wait_ms = 5000};
	struct redlock_deferral deferral = {.id = "x"};
	struct redlock_unlocking unlocking = {.sync = true};
	struct redlock_session session = {.label = "x"};
	struct redlock_view view = {.all = true};
	struct redlock_page page = {.limit = 1};
	const char *const names[] = {"a", "b"};
	struct redlock_grant grants[2];
	struct redlock_job job;
	size_t which;

	scripted_session_open(&s, HELLO "< PING$\n> OK\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &options, grants), -EINVAL);
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(s.c), "size"));
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &options), -EINVAL);
	ck_assert_int_eq(redlock_lock_all(s.c, names, 2, &options, grants), -EINVAL);
	ck_assert_int_eq(redlock_lock_any(s.c, names, 2, &options, &which, grants), -EINVAL);
	ck_assert_int_eq(redlock_lock_many_send(s.c, true, names, 2, &options), -EINVAL);
	ck_assert_int_eq(redlock_take(s.c, "q", &options, &job), -EINVAL);
	ck_assert_int_eq(redlock_take_send(s.c, "q", &options), -EINVAL);
	ck_assert_int_eq(redlock_unlock_with(s.c, "n", &unlocking), -EINVAL);
	ck_assert_int_eq(redlock_unlock_send(s.c, "n", &unlocking), -EINVAL);
	ck_assert_int_eq(redlock_defer(s.c, "q", (struct redlock_bytes){"p", 1}, &deferral, NULL), -EINVAL);
	ck_assert_int_eq(redlock_show(s.c, "n", &view, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_LOCKS, &page, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_hello(s.c, &session), -EINVAL);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

TEST(files_of_TLS_without_a_size_are_refused)
{
	struct redlock_tls tls = {.ca_file = "/nonexistent"};
	char why[200];

	ck_assert_int_eq(redlock_use_tls(&tls, why, sizeof(why)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "size"));
}
