/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/keyspace.c, keyfile.c: a run is killed at each instruction of each kind of change, and the next run knows what is believed. */
#include "daemon/store/keyspace.h"
#include "tests/fixture/store_run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct kept {
	unsigned keys;
	char value[8192];
	size_t value_n;
	struct instant until;
};

/* What the next run would know: of two keys the longer one. */
static void kept_note(void *context, const void *object, size_t size)
{
	struct kept *k = context;
	struct span name, value;
	struct instant until;

	if (!keyspace_read(object, size, &name, &value, &until))
		return;
	ck_assert(span_equal(name, SPAN("the name")));
	if (k->keys++ > 0 && value.n < k->value_n)
		return;
	ck_assert_uint_lt(value.n, sizeof(k->value));
	memcpy(k->value, value.p, value.n);
	k->value_n = value.n;
	k->until = until;
}

static struct kept kept_now(int dir)
{
	struct kept k = {0};

	ck_assert_int_eq(keyfile_read(dir, 1, keyspace_layout(), kept_note, &k), 0);
	return k;
}

/* A change of one key; value NULL: it is dropped. */
struct change {
	const char *what;
	size_t before_n; /* of its value; 0: there is no key */
	int64_t before_us;
	size_t after_n;
	int64_t after_us;
	bool same; /* the value stays */
};

static void filled(char *out, size_t n, char c)
{
	memset(out, c, n);
}

/* The child: one change, between two stops. */
static void change_make(int dir, const struct change *c)
{
	static const uint64_t seed[2] = {1, 2};
	static char before[8192], after[8192];
	struct keyspace s;
	struct keyfile *f;
	struct key *key;

	filled(before, c->before_n, 'a');
	filled(after, c->after_n, c->same ? 'a' : 'b');
	if (keyfile_new(dir, 1, keyspace_layout(), &f) < 0)
		_exit(1);
	keyspace_init(&s, seed, f);
	if (c->before_n)
		keyspace_set(&s, keyspace_find(&s, SPAN("the name")), SPAN("the name"), (struct span){before, c->before_n}, (struct instant){c->before_us});
	key = keyspace_find(&s, SPAN("the name"));
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	if (c->after_n)
		keyspace_set(&s, key, SPAN("the name"), (struct span){after, c->after_n}, (struct instant){c->after_us});
	else
		keyspace_drop(&s, key);
	raise(SIGSTOP);
	_exit(0);
}

static bool value_is(const struct kept *k, size_t n, char c)
{
	if (k->value_n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (k->value[i] != c)
			return false;
	return true;
}

/* Until the change is made the old key is believed, and afterwards the new one. */
static void kept_check(const struct change *c, const struct kept *k, unsigned step)
{
	bool old = c->before_n && value_is(k, c->before_n, 'a'), new = c->after_n && value_is(k, c->after_n, c->same ? 'a' : 'b');

	if (k->keys == 0) {
		ck_assert_msg(c->before_n == 0 || c->after_n == 0, "%s, step %u: the name is free", c->what, step);
		return;
	}
	ck_assert_msg(old || new || k->value_n == 0, "%s, step %u: a value that nobody has given", c->what, step);
	ck_assert_msg(new || k->until.us >= c->before_us, "%s, step %u: the old key ends too early", c->what, step);
	ck_assert_msg(old || k->until.us >= c->after_us, "%s, step %u: the new key ends too early", c->what, step);
}

static void change_is_stepped(const struct change *c)
{
	int dir = open(here.dir, O_RDONLY), status = 0;
	pid_t child = fork();
	unsigned steps = 0;
	struct kept k;

	if (child == 0)
		change_make(dir, c);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	do {
		k = kept_now(dir);
		kept_check(c, &k, steps++);
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSTOPPED(status));
	} while (WSTOPSIG(status) == SIGTRAP);
	ck_assert_uint_gt(steps, 50);
	k = kept_now(dir);
	ck_assert_uint_eq(k.keys, c->after_n > 0);
	ck_assert(c->after_n == 0 || (value_is(&k, c->after_n, c->same ? 'a' : 'b') && k.until.us == c->after_us));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	keyfile_remove(dir, 1);
	close(dir);
}

/* The child: it makes a file, between two stops. */
static void file_make(int dir)
{
	struct keyfile *f;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	if (keyfile_new(dir, 7, keyspace_layout(), &f) < 0)
		_exit(1);
	raise(SIGSTOP);
	_exit(0);
}

FIXTURE(.setup = store_runs_start, .teardown = store_runs_stop, .seconds = 120)

TEST(a_file_is_there_as_a_whole_or_not_at_all)
{
	int dir = open(here.dir, O_RDONLY), status = 0, r = -ENOENT, next;
	pid_t child = fork();
	unsigned steps = 0;

	if (child == 0)
		file_make(dir);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	do {
		next = keyfile_read(dir, 7, keyspace_layout(), NULL, NULL);
		ck_assert_msg(next == r || (r == -ENOENT && next == 0), "step %u: %d after %d", steps, next, r);
		r = next;
		ck_assert_int_eq(faccessat(dir, KEYFILE_KEYS "00000007", F_OK, 0), r ? -1 : 0);
		steps++;
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSTOPPED(status));
	} while (WSTOPSIG(status) == SIGTRAP);
	ck_assert_uint_gt(steps, 50);
	ck_assert_int_eq(r, 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	keyfile_remove(dir, 7);
	close(dir);
}

/* As a run leaves it that was killed while it made the file. */
TEST(a_file_that_was_not_made_to_its_end_is_in_nobodys_way)
{
	int dir = open(here.dir, O_RDONLY), fd = openat(dir, KEYFILE_KEYS "new", O_CREAT | O_WRONLY, 0600);
	struct keyfile *f;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(faccessat(dir, KEYFILE_KEYS "00000007", F_OK, 0), -1);
	ck_assert_int_eq(keyfile_new(dir, 7, keyspace_layout(), &f), 0);
	ck_assert_int_eq(faccessat(dir, KEYFILE_KEYS "new", F_OK, 0), -1);
	keyfile_free(f);
	ck_assert_int_eq(keyfile_new(dir, 7, keyspace_layout(), &f), -EEXIST);
	keyfile_free(f);
	fd = openat(dir, KEYFILE_KEYS "new", O_CREAT | O_WRONLY, 0600);
	close(fd);
	keyfile_remove_others(dir, 7);
	ck_assert_int_eq(faccessat(dir, KEYFILE_KEYS "new", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(dir, KEYFILE_KEYS "00000007", F_OK, 0), 0);
	keyfile_remove(dir, 7);
	close(dir);
}

TEST(a_run_may_be_killed_at_each_instruction)
{
	static const struct change change[] = {
		{.what = "a grant", .after_n = 40, .after_us = 5 * SEC},
		{.what = "a renewal", .before_n = 40, .before_us = 5 * SEC, .after_n = 40, .after_us = 9 * SEC, .same = true},
		{.what = "another value, longer", .before_n = 40, .before_us = 5 * SEC, .after_n = 40, .after_us = 9 * SEC},
		{.what = "another value, shorter", .before_n = 40, .before_us = 9 * SEC, .after_n = 40, .after_us = 5 * SEC},
		{.what = "a longer value", .before_n = 40, .before_us = 5 * SEC, .after_n = 300, .after_us = 9 * SEC},
		{.what = "a longer value, shorter", .before_n = 40, .before_us = 9 * SEC, .after_n = 300, .after_us = 5 * SEC},
		{.what = "a shorter value", .before_n = 300, .before_us = 5 * SEC, .after_n = 40, .after_us = 9 * SEC},
		{.what = "many readers", .before_n = 600, .before_us = 5 * SEC, .after_n = 5000, .after_us = 9 * SEC},
		{.what = "a release", .before_n = 40, .before_us = 5 * SEC},
	};

	for (unsigned i = 0; i < sizeof(change) / sizeof(change[0]); i++)
		change_is_stepped(&change[i]);
}
