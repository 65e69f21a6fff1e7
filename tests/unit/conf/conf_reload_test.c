/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/conf.c, file.c: what a reload finds and takes over, and the password file. */
#include "conf/internal.h"
#include "daemon/main/internal.h"
#include "tests/fixture/loaded_conf.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct change {
	unsigned count;
	char last[256];
};

static void change_note(void *context, const char *path, const char *from, const char *to, bool reloadable)
{
	struct change *change = context;

	change->count++;
	snprintf(change->last, sizeof(change->last), "%s %s -> %s %d", path, from, to, reloadable);
}

FIXTURE(.setup = begin, .teardown = end)

TEST(a_difference_is_one_of_values_not_of_spelling)
{
	struct change change = {0};
	struct conf other;

	conf_init(&other);
	ck_assert_int_eq(conf_set(&conf, "lease=10000ms", &report), 0);
	ck_assert_uint_eq(conf_diff(&conf, &other, change_note, &change), 0);
	ck_assert_uint_eq(change.count, 0);
	ck_assert_int_eq(conf_set(&conf, "lease=20s", &report), 0);
	ck_assert_uint_eq(conf_diff(&other, &conf, change_note, &change), 0);
	ck_assert_str_eq(change.last, "lease 10s -> 20s 1");
	ck_assert_int_eq(conf_set(&conf, "redis.nodes=[a, 'b:1']", &report), 0);
	ck_assert_uint_eq(conf_diff(&other, &conf, change_note, &change), 1);
	ck_assert_int_eq(conf_set(&conf, "lease=10s", &report), 0);
	ck_assert_uint_eq(conf_diff(&other, &conf, change_note, &change), 1);
	ck_assert_str_eq(change.last, "redis.nodes (none, and store: redis is refused) -> [a, b:1] 0");
	ck_assert_uint_eq(change.count, 4);
	ck_assert_int_eq(conf_set(&other, "listen.tcp=127.0.0.1:7421", &report), 0);
	ck_assert_uint_eq(conf_diff(&conf, &other, NULL, NULL), 2);
	conf_release(&other);
}

TEST(every_key_that_a_reload_must_reach_is_live)
{
	static const char *const live[] = {"log.level",     "limits.waiting", "limits.clients",
					   "limits.output", "lease",          "redis.password_file"};

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		ck_assert_msg(setting_find(live[i])->live, "%s", live[i]);
	ck_assert(!setting_find("max_lease")->live);
	ck_assert(!setting_find("limits.line")->live); /* buffers are as long as a line */
	ck_assert(!setting_find("redis.nodes")->live);
}

/* The memory may have held anything before. */
TEST(the_service_is_told_all_that_it_takes_from_a_reload)
{
	struct core_conf core;

	ck_assert_int_eq(load("lease: 9s\nlimits: {locks: 16}\n"), 0);
	memset(&core, 0xa5, sizeof(core));
	core_conf_fill(&core, &conf);
	ck_assert_int_eq(core.lease_us, 9 * SECOND);
	ck_assert_int_eq(core.min_lease_us, 100 * MS);
	ck_assert_uint_eq(core.limits.locks, 16);
	ck_assert_uint_eq(core.limits.waiting, 4096);
	ck_assert_uint_eq(core.limits.detached, 10000);
	ck_assert_uint_eq(core.limits.name, 512);
	ck_assert_uint_eq(core.limits.mistakes, 100);
	ck_assert_uint_eq(core.limits.line, 139264);
	ck_assert_uint_eq(core.limits.output, 4 << 20);
	ck_assert_uint_eq(core.listed, 0);
}

static unsigned sources_count(const struct conf *c)
{
	unsigned count = 0;

	for (const struct conf_source *s = c->sources; s; s = s->next)
		count++;
	return count;
}

TEST(a_reload_takes_live_keys_with_their_origin_and_leaves_the_rest)
{
	char *text = NULL;
	size_t n;
	FILE *out;

	ck_assert_int_eq(load("lease: 9s\nmax_lease: 40s\nredis: {password_file: a}\n"), 0);
	for (unsigned i = 0; i < 3; i++) {
		static const char later[] = "\nlease: 8000ms\nmax_lease: 50s\nredis: {password_file: b}\nlimits: {locks: 16}\n";
		struct conf fresh;

		conf_init(&fresh);
		ck_assert_int_eq(conf_load_text(&fresh, "later.yaml", later, strlen(later), &report), 0);
		conf_take_live(&conf, &fresh);
		conf_release(&fresh);
		ck_assert_uint_eq(sources_count(&conf), 2);
	}
	out = open_memstream(&text, &n);
	conf_dump(&conf, out);
	fclose(out);
	ck_assert_int_eq(conf.max_lease, 40 * SECOND);
	ck_assert_uint_eq(conf.limits.locks, 16);
	ck_assert_str_eq(conf.redis.password_file, "b");
	ck_assert_ptr_nonnull(strstr(text, "\nlease: 8000ms                             # later.yaml:2\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nmax_lease: 40s                            # test.yaml:2\n"));
	free(text);
}

TEST(the_password_of_another_user_waits_for_the_restart_with_it)
{
	static const char later[] = "redis: {user: later, password_file: b}\n";
	struct change change = {0};
	struct conf fresh;

	ck_assert_int_eq(load("redis: {user: before, password_file: a}\n"), 0);
	conf_init(&fresh);
	ck_assert_int_eq(conf_load_text(&fresh, "later.yaml", later, strlen(later), &report), 0);
	ck_assert(!conf_password_is_live(&conf, &fresh));
	ck_assert_uint_eq(conf_diff(&conf, &fresh, change_note, &change), 2);
	ck_assert_str_eq(change.last, "redis.password_file a -> b 0");
	conf_take_live(&conf, &fresh);
	ck_assert_str_eq(conf.redis.password_file, "a");
	ck_assert(conf_password_is_live(&conf, &conf));
	conf_release(&fresh);
}

/* The guard goes on with the max_lease of the start. */
TEST(a_reload_never_lifts_the_lease_above_the_max_lease_in_effect)
{
	static const char later[] = "lease: 50s\nmin_lease: 40s\nmax_lease: 60s\nlimits: {clients: 7}\n";
	struct conf fresh;

	conf_init(&fresh);
	ck_assert_int_eq(conf_load_text(&fresh, "later.yaml", later, strlen(later), &report), 0);
	ck_assert_int_eq(conf_check(&fresh, &report), 0);
	ck_assert_uint_eq(conf_diff(&conf, &fresh, NULL, NULL), 3);
	conf_take_live(&conf, &fresh);
	conf_release(&fresh);
	ck_assert_int_eq(conf.lease, 10 * SECOND);
	ck_assert_int_eq(conf.min_lease, 100 * MS);
	ck_assert_uint_eq(conf.limits.clients, 7);
	ck_assert_int_eq(conf_check(&conf, &report), 0);
}

/* Writes a password file into a folder of its own and asks for it. */
static int password_of(const char *bytes, size_t n, char **ret_password)
{
	char folder[] = "/tmp/conf_test.XXXXXX", path[64], assignment[128];
	FILE *f;
	int r;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/secret", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
	snprintf(assignment, sizeof(assignment), "redis.password_file=%s", path);
	ck_assert_int_eq(conf_set(&conf, assignment, &report), 0);
	r = conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, ret_password);
	unlink(path);
	rmdir(folder);
	return r;
}

TEST(a_password_is_one_line_without_its_end)
{
	char *password = NULL;

	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), 0);
	ck_assert_ptr_null(password);
	ck_assert_int_eq(password_of("se cret\r\n", 9, &password), 0);
	ck_assert_str_eq(password, "se cret");
	free(password);
	ck_assert_int_eq(password_of("bare", 4, &password), 0);
	ck_assert_str_eq(password, "bare");
	free(password);
	ck_assert_int_eq(password_of("", 0, &password), -EINVAL);
	ck_assert_int_eq(password_of("\n", 1, &password), -EINVAL);
	ck_assert_int_eq(password_of("a\nb\n", 4, &password), -EINVAL);
	ck_assert_int_eq(password_of("a\0b", 3, &password), -EINVAL);
}

TEST(a_password_file_whose_path_is_too_long_is_an_error)
{
	char text[3600], *password = NULL;

	memset(text, 'a', sizeof(text));
	memcpy(text, "redis.password_file=", 20);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(conf_set(&conf, text, &report), 0);
	memset(text, '/', sizeof(text) - 1);
	ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", text, 1), 0);
	errno = 0;
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), -ENAMETOOLONG);
	unsetenv("CREDENTIALS_DIRECTORY");
}

TEST(a_relative_password_file_is_a_credential_first_and_then_beside_the_file)
{
	static const char text[] = "redis: {password_file: secret}\n";
	char folder[] = "/tmp/conf_test.XXXXXX", path[64], label[64], *password;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/secret", folder);
	snprintf(label, sizeof(label), "%s/redlockd.yaml", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs("beside\n", f);
	fclose(f);
	ck_assert_int_eq(conf_load_text(&conf, "/nowhere/redlockd.yaml", text, strlen(text), &report), 0);
	setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1);
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), -ENOENT);
	setenv("CREDENTIALS_DIRECTORY", folder, 1);
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), 0);
	free(password);
	setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1);
	ck_assert_int_eq(conf_load_text(&conf, label, text, strlen(text), &report), 0);
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), 0);
	ck_assert_str_eq(password, "beside");
	free(password);
	unlink(path);
	rmdir(folder);
}

/* Nobody writes to the pipe, and a reader would wait for it. */
TEST(a_secret_that_is_no_file_is_not_read)
{
	char folder[] = "/tmp/conf_test.XXXXXX", path[64], assignment[100], *password;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/secret", folder);
	snprintf(assignment, sizeof(assignment), "redis.password_file=%s", path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(conf_set(&conf, assignment, &report), 0);
	ck_assert(!conf_may_be_read_again(path));
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), -ENOTSUP);
	secrets_check(&conf, &report);
	ck_assert_uint_eq(report.errors, 1);
	unlink(path);
	ck_assert(conf_may_be_read_again(NULL));
	ck_assert(conf_may_be_read_again(path));
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), -ENOENT);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs("secret\n", f);
	fclose(f);
	ck_assert(conf_may_be_read_again(path));
	ck_assert_int_eq(conf_secret(&conf, KEY_REDIS_PASSWORD_FILE, &password), 0);
	ck_assert_str_eq(password, "secret");
	free(password);
	unlink(path);
	rmdir(folder);
}

static int64_t users_read_us(unsigned count)
{
	char path[] = "/tmp/redlockd-test-XXXXXX", set[100];
	struct timespec before, after;
	struct conf_users *users;
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w");

	for (unsigned i = 0; i < count; i++)
		fprintf(out, "service-of-some-department-%05u $y$j9T$of-the-secret\n", i);
	fclose(out);
	snprintf(set, sizeof(set), "auth.users_file=%s", path);
	ck_assert_int_eq(conf_set(&conf, set, &report), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	users = conf_users(&conf, &report);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	ck_assert_ptr_nonnull(users);
	ck_assert_uint_eq(users->count, count);
	conf_users_free(users);
	unlink(path);
	return (after.tv_sec - before.tv_sec) * SEC + (after.tv_nsec - before.tv_nsec) / 1000;
}

/* The loop waits for it. Each name was compared with all before it. */
TEST(ten_times_as_many_users_take_no_hundred_times_as_long)
{
	int64_t some = users_read_us(1000), many = users_read_us(10000);

	ck_assert_msg(many < 25 * some, "%lld us, and %lld us", (long long)some, (long long)many);
}
