/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/systemd/unit.c: what the unit says of files, and which of them its user cannot read. The user of the tests is nobody, which each system has. */
#include "daemon/systemd/unit.h"

#include "tests/fixture/loaded_conf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ETC "/etc/systemd/system/redlockd.service"

static char root[64], said[4096];
static struct unit unit;

static const char *path_of(const char *below)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s%s", root, below);
	return path;
}

static void file_write(const char *below, const char *text, mode_t mode)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s", path_of(below));
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	fputs(text, out);
	fclose(out);
	chmod(path, mode);
}

static void setup(void)
{
	begin();
	snprintf(root, sizeof(root), "/tmp/unit-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	chmod(root, 0755);
	unsetenv("CREDENTIALS_DIRECTORY");
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	ck_assert_int_eq(system(command), 0);
	end();
}

/* What is said of a configuration with these assignments, which end with NULL. */
static const char *checked(const char *const *sets)
{
	struct conf_report all = {.out = fmemopen(said, sizeof(said), "w")};

	memset(said, 0, sizeof(said));
	for (; *sets; sets++)
		ck_assert_int_eq(conf_set(&conf, *sets, &report), 0);
	unit_read(&unit, root);
	unit_check(&unit, &conf, path_of("/redlockd.yaml"), &all);
	conf_report_print(&all);
	fclose(all.out);
	return said;
}

static const char *password_at(const char *name)
{
	char set[300];

	snprintf(set, sizeof(set), "redis.password_file=%s", name);
	return checked((const char *const[]){set, NULL});
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(the_unit_and_its_drop_ins_tell_the_user_and_the_credentials)
{
	unit_read(&unit, root);
	ck_assert_str_eq(unit.user, "");
	file_write("/usr/lib/systemd/system/redlockd.service", "[Service]\nUser=redlockd\nGroup=x\n", 0644);
	unit_read(&unit, root);
	ck_assert_str_eq(unit.user, "redlockd");
	file_write(ETC, "[Service]\nUser=other\n", 0644); /* takes its place */
	file_write(ETC ".d/a.conf", "[Service]\nLoadCredential=one:/x\n LoadCredentialEncrypted=two\nUserX=z\n", 0644);
	unit_read(&unit, root);
	ck_assert_str_eq(unit.user, "other");
	ck_assert(unit_loads(&unit, "one") && unit_loads(&unit, "two"));
	ck_assert(!unit_loads(&unit, "on") && !unit_loads(&unit, "x") && !unit_loads(&unit, "one:/x"));
	file_write(ETC ".d/b.conf", "[Service]\nUser=root\n", 0644);
	unit_read(&unit, root);
	ck_assert_str_eq(unit.user, "");
}

LOOP_TEST(a_file_that_the_service_cannot_read_is_told_with_the_user_and_the_remedy, geteuid() == 0)
{
	char path[256], text[600];

	file_write("/redlockd.yaml", "", 0644);
	file_write("/secret", "word\n", 0600);
	snprintf(path, sizeof(path), "%s", path_of("/secret"));
	ck_assert_str_eq(password_at(path), ""); /* there is no unit */
	file_write(ETC, "[Service]\nUser=nobody\n", 0644);
	snprintf(text, sizeof(text),
	         "--set:1:21: warning: user nobody, as which redlockd.service runs, cannot read %s: Permission denied; let its group read the "
	         "file, with mode 640\n", path);
	ck_assert_msg(strncmp(password_at(path), text, strlen(text)) == 0, "%s", said);
	ck_assert_int_eq(chown(path, 0, 65534), 0);
	chmod(path, 0640);
	ck_assert_str_eq(password_at(path), "");
	chmod(root, 0700); /* a folder above it */
	ck_assert_ptr_nonnull(strstr(password_at(path), "Permission denied"));
}

LOOP_TEST(a_credential_is_read_for_the_service, geteuid() == 0)
{
	char text[256];

	file_write("/redlockd.yaml", "", 0644);
	file_write("/redis-password", "word\n", 0600);
	file_write(ETC, "[Service]\nUser=nobody\n", 0644);
	ck_assert_int_eq(chdir(root), 0);
	snprintf(text, sizeof(text), "LoadCredential=redis-password:redis-password");
	ck_assert_ptr_nonnull(strstr(password_at("redis-password"), text));
	file_write(ETC ".d/a.conf", "[Service]\nLoadCredential=redis-password:/etc/x\n", 0644);
	ck_assert_str_eq(password_at("redis-password"), "");
	ck_assert_ptr_nonnull(strstr(password_at(path_of("/redis-password")), "Permission denied")); /* it is not looked up there */
}

LOOP_TEST(keys_of_tls_count_where_tls_is_on_and_the_configuration_always, geteuid() == 0)
{
	char key[256];

	file_write("/redlockd.yaml", "", 0600);
	file_write("/key", "word\n", 0600);
	file_write(ETC, "[Service]\nUser=nobody\n", 0644);
	snprintf(key, sizeof(key), "tls.key_file=%s", path_of("/key"));
	ck_assert_ptr_nonnull(strstr(checked((const char *const[]){key, NULL}), "redlockd.yaml: warning: user nobody"));
	ck_assert_ptr_null(strstr(said, "/key"));
	chmod(path_of("/redlockd.yaml"), 0644);
	ck_assert_ptr_nonnull(strstr(checked((const char *const[]){"listen.tls=127.0.0.1:7422", NULL}), "/key: Permission denied"));
	ck_assert_ptr_null(strstr(said, "redlockd.yaml"));
}
