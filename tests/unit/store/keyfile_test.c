/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/keyfile.c, state.c: what the next run knows of a run that was killed. */
#include "daemon/store/keyfile.h"
#include "tests/fixture/store_run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void start(void)
{
	store_runs_start();
	here.keyfiles = true;
}

/* --- from run to run ----------------------------------------------------------------------------------------------------- */

FIXTURE(.setup = start, .teardown = store_runs_stop)

TEST(after_a_crash_only_names_that_somebody_may_believe_in_are_refused)
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

/* Before and after it, keys go into slabs of both files. */
TEST(a_keyfile_that_somebody_removes_is_made_again_with_all_keys)
{
	struct store_run a, b;
	char name[16], file[32];
	int error;

	store_run_begin(&a, BOOT);
	for (unsigned i = 0; i < 2000; i++) {
		if (i == 1000) {
			snprintf(file, sizeof(file), KEYFILE_KEYS "%08x", (unsigned)keyfile_id(a.state.keys));
			ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_THERE);
			ck_assert_int_eq(unlinkat(a.state.dir, file, 0), 0);
			ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_GONE);
			ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_THERE);
			ck_assert(!state_loses_names(&a.state));
		}
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(store_run_acquire(&a, span_of(name), 10000), 'G');
	}
	store_run_crash(&a);
	store_run_begin(&b, BOOT);
	ck_assert_int_eq(b.state.found, STATE_KEPT);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(store_run_acquire(&b, span_of(name), 10000), 'B');
	}
	store_run_crash(&b);
}

TEST(a_keyfile_that_somebody_cuts_is_known_as_cut)
{
	struct store_run a;
	char file[32];
	int fd, error;

	store_run_begin(&a, BOOT);
	snprintf(file, sizeof(file), KEYFILE_KEYS "%08x", (unsigned)keyfile_id(a.state.keys));
	fd = openat(a.state.dir, file, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_CUT);
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	close(fd);
	store_run_crash(&a);
}

/* Of whatever length it is then: the run would be taken for one that has crashed without names. */
LOOP_TEST(a_mark_that_somebody_cuts_is_written_again, 2)
{
	struct store_run a, b;
	struct stat st;
	int error;

	store_run_begin(&a, BOOT);
	ck_assert_int_eq(store_run_acquire(&a, SPAN("held"), 10000), 'G');
	ck_assert_int_eq(fstatat(a.state.dir, "state", &st, 0), 0);
	ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_THERE);
	ck_assert_int_eq(truncate(here.path, _i ? st.st_size - 1 : 0), 0);
	ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_GONE);
	ck_assert_int_eq(state_mark(&a.state, a.memory, here.now), 0);
	ck_assert_int_eq(state_look(&a.state, NULL, &error), KEYFILE_THERE);
	store_run_crash(&a);
	store_run_begin(&b, BOOT);
	ck_assert_int_eq(b.state.found, STATE_KEPT);
	store_run_crash(&b);
}

TEST(tokens_go_on_above_all_that_were_given)
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

TEST(a_run_that_is_killed_before_its_first_mark_changes_nothing)
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

TEST(names_outlive_several_crashes_and_a_clean_end)
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

TEST(a_keyfile_of_another_boot_counts_for_nothing)
{
	struct store_run a;

	store_run_begin(&a, BOOT);
	ck_assert_int_eq(store_run_acquire(&a, SPAN("held"), 10000), 'G');
	store_run_crash(&a);
	ck_assert_int_eq(next_run_finds(""), STATE_CRASH);
	ck_assert_int_eq(next_run_finds(REBOOT), STATE_FIRST);
	here.now.us = 2000 * SEC;
}

TEST(many_names_of_all_lengths_are_kept)
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

/* --- what goes wrong ------------------------------------------------------------------------------------------------------- */

static void keyfile_path(const struct store_run *l, char *path)
{
	sprintf(path, "%s/keys-%08x", here.dir, keyfile_id(l->state.keys));
}

TEST(a_damaged_keyfile_is_a_crash)
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

/* What is left looks like a file with fewer names, or with none. */
TEST(a_keyfile_that_was_cut_or_punched_between_two_slabs_is_a_crash)
{
	for (unsigned slabs = 0; slabs < 3; slabs++) {
		struct store_run l;
		char path[128], name[16], zeros[16 * 1024] = "";
		int fd, r;

		store_run_begin(&l, BOOT);
		if (l.found == STATE_CRASH) {
			store_run_join(&l);
			ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
		}
		for (unsigned i = 0; i < 300; i++) {
			snprintf(name, sizeof(name), "n%u", i);
			ck_assert_int_eq(store_run_acquire(&l, span_of(name), 10000), 'G');
		}
		keyfile_path(&l, path);
		store_run_crash(&l);
		fd = open(path, O_RDWR);
		ck_assert_int_ge(fd, 0);
		r = slabs < 2 ? ftruncate(fd, 4096 + slabs * 16384) : (int)pwrite(fd, zeros, sizeof(zeros), 4096 + 16384) - (int)sizeof(zeros);
		ck_assert_int_eq(r, 0);
		close(fd);
		ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
		here.now.us += 20 * SEC;
	}
}

/* What a probe tells; locks are granted all the same. */
static enum defect trouble_of(struct store_run *l)
{
	struct answer a;

	store_run_call(l, (struct call){.kind = CALL_PROBE}, &a);
	ck_assert(a.probe->lesser == (a.probe->defect != DEFECT_NONE));
	return a.probe->defect;
}

static void folder_becomes(mode_t mode)
{
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(here.dir, mode), 0);
	if (mode != 0700)
		ck_assert_int_eq(seteuid(65534), 0);
}

/* Somebody else than root, whom modes do not bind. */
TEST(files_that_cannot_be_looked_at_are_not_gone)
{
	struct store_run l;
	int error;

	if (getuid() != 0)
		return;
	store_run_begin(&l, BOOT);
	folder_becomes(0);
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_THERE);
	ck_assert_int_eq(error, -EACCES);
	ck_assert(!state_loses_names(&l.state));
	folder_becomes(0700);
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_THERE);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}

TEST(a_keyfile_that_cannot_be_made_again_is_made_once_that_is_possible)
{
	struct store_run l;
	char path[128];
	int error;

	if (getuid() != 0)
		return;
	store_run_begin(&l, BOOT);
	keyfile_path(&l, path);
	ck_assert_int_eq(unlink(path), 0);
	folder_becomes(0555);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_GONE);
		ck_assert_int_eq(error, -EACCES);
		ck_assert(state_loses_names(&l.state));
		ck_assert_int_eq(trouble_of(&l), DEFECT_FILES);
	}
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	folder_becomes(0700);
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_GONE);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_THERE);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}

/* Returns what they might have before. */
static rlim_t files_may_have(rlim_t bytes)
{
	struct rlimit limit;
	rlim_t was;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	was = limit.rlim_cur;
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return was;
}

/* A thousand names, most of which find no space. Returns what files might have before. */
static rlim_t run_out_of_space(struct store_run *l)
{
	char name[16];
	rlim_t was;

	store_run_begin(l, BOOT);
	was = files_may_have((rlim_t)64 * 1024);
	ck_assert(!state_loses_names(&l->state));
	ck_assert_int_eq(trouble_of(l), DEFECT_NONE);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(store_run_acquire(l, span_of(name), 10000), 'G');
	}
	ck_assert(state_loses_names(&l->state));
	ck_assert_int_eq(trouble_of(l), DEFECT_FILES);
	return was;
}

TEST(names_that_found_no_space_are_kept_once_there_is_some)
{
	struct store_run l;
	rlim_t was = run_out_of_space(&l);
	char name[16];

	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0); /* names no keyfile */
	memory_look(l.memory);
	ck_assert_int_eq(trouble_of(&l), DEFECT_FILES);
	files_may_have(was);
	memory_look(l.memory);
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	ck_assert(!state_loses_names(&l.state));
	ck_assert(!instant_before(here.now, state_due(&l.state, l.memory)));
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	ck_assert(instant_before(here.now, state_due(&l.state, l.memory)));
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.state.found, STATE_KEPT);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(store_run_acquire(&l, span_of(name), 10000), 'B');
	}
	store_run_crash(&l);
}

/* However many wait. Those that never find room keep no other from its place. */
TEST(a_look_moves_a_bounded_number_of_keys)
{
	static char value[60000];
	struct store_run l;
	unsigned again = 0;
	char name[16];
	rlim_t was;

	memset(value, 'v', sizeof(value));
	store_run_begin(&l, BOOT);
	was = files_may_have((rlim_t)64 * 1024);
	for (unsigned i = 0; i < 3300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		memory_put(l.memory, span_of(name), (struct span){value, i % 3 ? 1 : sizeof(value)}, instant_add(here.now, 3600 * SEC));
	}
	ck_assert(!memory_look(l.memory)); /* none finds space */
	files_may_have(was);
	for (unsigned i = 0; i < 6; i++)
		again += memory_look(l.memory);
	ck_assert_uint_ge(again, 2);
	ck_assert_int_eq(trouble_of(&l), DEFECT_FILES);
	for (unsigned i = 0; i < 3300; i += 3) {
		snprintf(name, sizeof(name), "n%u", i);
		memory_remove(l.memory, span_of(name));
	}
	ck_assert(!memory_look(l.memory));
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	store_run_crash(&l);
}

/* Such a key is in no file as long as it stands. */
TEST(after_a_key_that_is_too_large_for_the_file_names_are_kept_again)
{
	static char value[60000];
	struct store_run l;

	memset(value, 'v', sizeof(value));
	store_run_begin(&l, BOOT);
	memory_put(l.memory, SPAN("large"), (struct span){value, sizeof(value)}, instant_add(here.now, SEC));
	memory_look(l.memory);
	ck_assert_int_eq(trouble_of(&l), DEFECT_FILES);
	memory_remove(l.memory, SPAN("large"));
	memory_look(l.memory);
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}

TEST(a_run_that_finds_no_space_for_a_keyfile_makes_one_once_there_is_some)
{
	rlim_t was = files_may_have(1000);
	struct store_run l;
	int error;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(trouble_of(&l), DEFECT_FILES);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_GONE);
	ck_assert_int_eq(error, -EFBIG);
	files_may_have(was);
	ck_assert_int_eq(state_look(&l.state, NULL, &error), KEYFILE_GONE);
	ck_assert_int_eq(error, 0);
	memory_look(l.memory);
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}

TEST(a_key_that_finds_no_space_makes_the_next_crash_one_without_names)
{
	struct store_run l;
	rlim_t was = run_out_of_space(&l);

	files_may_have(was);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	store_run_begin(&l, BOOT);
	store_run_join(&l);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	ck_assert(!state_loses_names(&l.state));
	ck_assert_int_eq(trouble_of(&l), DEFECT_NONE);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("held"), 10000), 'G');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_KEPT);
}

/* The names of the first run are unknown until the quarantine is over. */
TEST(a_run_that_is_killed_in_its_quarantine_vouches_for_nothing)
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

TEST(without_a_keyfile_the_names_of_a_crash_are_unknown)
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
