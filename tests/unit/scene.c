/* SPDX-License-Identifier: BSD-2-Clause */
/* See scene.h. */
#include "tests/unit/scene.h"

#include <check.h>
#include <string.h>

void scene_open(struct scene *s, const char *script, int64_t timeout_ms)
{
	fake_daemon_begin(&s->f, script);
	ck_assert_int_eq(redlock_open(s->f.addr, PATIENCE, &s->c), 0);
	ck_assert_int_eq(redlock_hello(s->c, &(struct redlock_session){.label = "me", .grace_ms = 5000}), 0);
	redlock_set_timeout(s->c, timeout_ms);
}

void scene_begin(struct scene *s, const char *script)
{
	scene_open(s, script, PATIENCE);
	ck_assert_int_eq(redlock_lock(s->c, "n", NULL, &s->grant), 0);
	ck_assert_int_eq(s->grant.fence, 17);
}

void scene_end(struct scene *s)
{
	redlock_close(s->c);
	fake_daemon_end(&s->f);
}

void scene_check(struct scene *s, int expected)
{
	int r = redlock_check(s->c, "n", &s->grant);

	ck_assert_msg(r == expected, "%d, not %d: %s", r, expected, redlock_errmsg(s->c));
}

void scene_refused(const struct scene *s, int r, const char *code)
{
	ck_assert_int_eq(r, REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(s->c), code);
}

void scene_lost_once(struct scene *s, const char *text)
{
	const struct redlock_line *push = redlock_next_push(s->c);
	struct redlock_bytes said;

	ck_assert_ptr_nonnull(push);
	said = redlock_line_text(push);
	ck_assert_msg(said.n == strlen(text) && !memcmp(said.p, text, said.n), "%.*s", (int)said.n, said.p);
	ck_assert_ptr_null(redlock_next_push(s->c));
}
