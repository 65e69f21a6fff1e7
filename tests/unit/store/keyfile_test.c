/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/keyfile.c, keyspace.c, state.c: what the next run knows of a run that was killed. */
#include "tests/fixture/store_run.h"

#include "daemon/store/keyspace.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
	store_runs_start();
	here.keyfiles = true;
}

/* --- from run to run ----------------------------------------------------------------------------------------------------- */

START_TEST(after_a_crash_only_names_that_somebody_may_believe_in_are_refused)
{
	struct store_run a, b;
	char value[32];

	store_run_begin(&a, BOOT);
	ck_assert_int_eq(store_run_acquire(&a, SPAN("held"), 10000), 'G');
	ck_assert_int_eq(store_run_acquire(&a, SPAN("over"), 100), 'G');
	ck_assert_int_eq(store_run_acquire(&a, SPAN("freed"), 10000), 'G');
	store_run_call(&a, (struct call){.kind = CALL_RELEASE, .name = SPAN("freed"), .value = span_of(a.value)}, &(struct answer){0});
	strcpy(value, a.value);
	store_run_crash(&a);
	here.now.us += SEC;
	store_run_begin(&b, BOOT);
	ck_assert_int_eq(b.state.found, STATE_KEPT);
	ck_assert_int_eq(store_run_acquire(&b, SPAN("held"), 10000), 'B');
	ck_assert_int_eq(store_run_acquire(&b, SPAN("over"), 10000), 'G');
	ck_assert_int_eq(store_run_acquire(&b, SPAN("freed"), 10000), 'G');
	ck_assert_int_eq(store_run_adopt(&b, SPAN("held"), value, 5000), 'E');
	here.now.us += 9500 * MSEC;
	ck_assert_int_eq(store_run_acquire(&b, SPAN("held"), 10000), 'G');
	store_run_crash(&b);
}
END_TEST

START_TEST(tokens_go_on_above_all_that_were_given)
{
	struct store_run a, b;
	int64_t most = 0;

	store_run_begin(&a, BOOT);
	for (unsigned i = 0; i < 100; i++)
		most = store_run_grant(&a);
	store_run_crash(&a);
	here.now.us += 10 * MSEC;
	store_run_begin(&b, BOOT);
	ck_assert_int_gt(store_run_grant(&b), most);
	store_run_crash(&b);
}
END_TEST

START_TEST(a_run_that_is_killed_before_its_first_mark_changes_nothing)
{
	struct store_run a, b;

	store_run_begin(&a, BOOT);
	ck_assert_int_eq(store_run_acquire(&a, SPAN("held"), 10000), 'G');
	store_run_crash(&a);
	for (unsigned i = 0; i < 3; i++) {
		store_run_open(&b, BOOT);
		store_run_crash(&b);
	}
	store_run_begin(&b, BOOT);
	ck_assert_int_eq(b.state.found, STATE_KEPT);
	ck_assert_int_eq(store_run_acquire(&b, SPAN("held"), 10000), 'B');
	store_run_crash(&b);
}
END_TEST

START_TEST(names_outlive_several_crashes_and_a_clean_end)
{
	struct store_run l;
	char value[32];

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	strcpy(value, l.value);
	for (unsigned i = 0; i < 3; i++) {
		store_run_crash(&l);
		here.now.us += SEC;
		store_run_begin(&l, BOOT);
		ck_assert_int_eq(l.state.found, STATE_KEPT);
	}
	store_run_end(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.state.found, STATE_CLEAN);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'B');
	ck_assert_int_eq(store_run_adopt(&l, SPAN("held"), value, 5000), 'E');
	store_run_end(&l);
}
END_TEST

START_TEST(a_keyfile_of_another_boot_counts_for_nothing)
{
	struct store_run a;

	store_run_begin(&a, BOOT);
	ck_assert_int_eq(store_run_acquire(&a, SPAN("held"), 10000), 'G');
	store_run_crash(&a);
	ck_assert_int_eq(next_run_finds(""), STATE_CRASH);
	ck_assert_int_eq(next_run_finds(REBOOT), STATE_FIRST);
	here.now.us = 2000 * SEC;
}
END_TEST

START_TEST(many_names_of_all_lengths_are_kept)
{
	struct store_run l;
	char name[600];

	store_run_begin(&l, BOOT);
	for (unsigned i = 0; i < 3000; i++) {
		memset(name, 'n', sizeof(name));
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(store_run_acquire(&l, (struct span){name, 10 + i % 503}, 10000), 'G');
	}
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.state.found, STATE_KEPT);
	ck_assert_uint_eq(memory_count(l.memory), 3000);
	for (unsigned i = 0; i < 3000; i++) {
		memset(name, 'n', sizeof(name));
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(store_run_acquire(&l, (struct span){name, 10 + i % 503}, 10000), 'B');
	}
	store_run_crash(&l);
}
END_TEST

/* --- what goes wrong ------------------------------------------------------------------------------------------------------- */

static void keyfile_path(const struct store_run *l, char *path)
{
	sprintf(path, "%s/keys-%08x", here.dir, keyfile_id(l->state.keys));
}

START_TEST(a_damaged_keyfile_is_a_crash)
{
	static const struct {
		off_t size, at;
	} how[] = {{4000, 0}, {6000, 0}, {0, 1}, {0, 12}, {0, 16}, {0, 4096}, {0, 4101}};

	for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct store_run l;
		char path[128];
		int fd;

		store_run_begin(&l, BOOT);
		if (l.found == STATE_CRASH) {
			store_run_join(&l);
			ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
		}
		ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
		keyfile_path(&l, path);
		store_run_crash(&l);
		fd = open(path, O_RDWR);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(how[i].size ? ftruncate(fd, how[i].size) : pwrite(fd, "\xff", 1, how[i].at) - 1, 0);
		close(fd);
		ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
		here.now.us += 20 * SEC;
	}
}
END_TEST

START_TEST(a_key_that_finds_no_space_makes_the_next_crash_one_without_names)
{
	struct rlimit limit = {64 * 1024, 64 * 1024}, before;
	struct store_run l;
	char name[16];

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	store_run_begin(&l, BOOT);
	limit.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(!state_loses_names(&l.state));
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(store_run_acquire(&l, span_of(name), 10000), 'G');
	}
	ck_assert(state_loses_names(&l.state));
	setrlimit(RLIMIT_FSIZE, &before);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	store_run_begin(&l, BOOT);
	store_run_join(&l);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	ck_assert(!state_loses_names(&l.state));
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}
END_TEST

/* The names of the first run are unknown until the quarantine is over. */
START_TEST(a_run_that_is_killed_in_its_quarantine_vouches_for_nothing)
{
	struct store_run l;

	here.keyfiles = false;
	store_run_begin(&l, BOOT);
	store_run_crash(&l);
	here.keyfiles = true;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert(instant_before(here.now, state_due(&l.state, l.memory)));
	store_run_join(&l);
	ck_assert(!instant_before(here.now, state_due(&l.state, l.memory)));
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	ck_assert(instant_before(here.now, state_due(&l.state, l.memory)));
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}
END_TEST

START_TEST(without_a_keyfile_the_names_of_a_crash_are_unknown)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	store_run_crash(&l);
	here.keyfiles = false;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.state.found, STATE_KEPT);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
}
END_TEST

/* --- killed at each instruction -------------------------------------------------------------------------------------------- */

#define EPOCH_US INT64_C(1700000000000000)

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

START_TEST(a_run_may_be_killed_at_each_instruction)
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
END_TEST

Suite *keyfile_suite(void)
{
	Suite *s = suite_create("keyfile");
	TCase *c = tcase_create("runs"), *k = tcase_create("killed");

	tcase_add_checked_fixture(c, start, store_runs_stop);
	tcase_add_test(c, after_a_crash_only_names_that_somebody_may_believe_in_are_refused);
	tcase_add_test(c, tokens_go_on_above_all_that_were_given);
	tcase_add_test(c, a_run_that_is_killed_before_its_first_mark_changes_nothing);
	tcase_add_test(c, names_outlive_several_crashes_and_a_clean_end);
	tcase_add_test(c, a_keyfile_of_another_boot_counts_for_nothing);
	tcase_add_test(c, many_names_of_all_lengths_are_kept);
	tcase_add_test(c, a_damaged_keyfile_is_a_crash);
	tcase_add_test(c, a_key_that_finds_no_space_makes_the_next_crash_one_without_names);
	tcase_add_test(c, a_run_that_is_killed_in_its_quarantine_vouches_for_nothing);
	tcase_add_test(c, without_a_keyfile_the_names_of_a_crash_are_unknown);
	suite_add_tcase(s, c);
	tcase_set_timeout(k, 120);
	tcase_add_checked_fixture(k, store_runs_start, store_runs_stop);
	tcase_add_test(k, a_run_may_be_killed_at_each_instruction);
	suite_add_tcase(s, k);
	return s;
}
