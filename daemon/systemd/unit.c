/* SPDX-License-Identifier: BSD-2-Clause */
/* See unit.h. A child process becomes the user of the unit and asks the kernel, which knows groups, folders and access control lists. */
#include "daemon/systemd/unit.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDERS "{/etc,/run,/usr/local/lib,/usr/lib,/lib}/systemd/system/redlockd.service"
#define REMEDY  "let its group read the file, with mode 640"

static const enum conf_key files_of_listen[] = {KEY_TLS_CERT_FILE, KEY_TLS_KEY_FILE, KEY_TLS_CLIENT_CA_FILE};
static const enum conf_key files_of_redis[] = {KEY_REDIS_TLS_CA_FILE, KEY_REDIS_TLS_CERT_FILE, KEY_REDIS_TLS_KEY_FILE};
static const enum conf_key files_always[] = {KEY_REDIS_PASSWORD_FILE, KEY_REDIS_SENTINEL_PASSWORD_FILE, KEY_HTTP_TOKEN_FILE, KEY_HTTP_METRICS_TOKEN_FILE,
                                               KEY_AUTH_USERS_FILE};

/* --- the unit -------------------------------------------------------------------------------------------------------- */

static const char *value_of(const char *line, const char *key)
{
	size_t n = strlen(key);

	line += strspn(line, " \t");
	return strncmp(line, key, n) == 0 && line[n] == '=' ? line + n + 1 : NULL;
}

static void credential_note(struct unit *u, const char *value)
{
	size_t at = strlen(u->credentials), n = strcspn(value, ": \t\r\n");

	if (n && at + n + 3 < sizeof(u->credentials))
		snprintf(u->credentials + at, sizeof(u->credentials) - at, "\n%.*s\n", (int)n, value);
}

static void line_take(struct unit *u, const char *line)
{
	static const char *const credential[] = {"LoadCredential", "LoadCredentialEncrypted", "SetCredential", "SetCredentialEncrypted"};
	const char *value = value_of(line, "User");

	if (value)
		snprintf(u->user, sizeof(u->user), "%.*s", (int)strcspn(value, " \t\r\n"), value);
	for (size_t i = 0; i < sizeof(credential) / sizeof(*credential); i++)
		if ((value = value_of(line, credential[i])))
			credential_note(u, value);
}

static void file_take(struct unit *u, const char *path)
{
	FILE *in = fopen(path, "re");
	char line[1024];

	while (in && fgets(line, sizeof(line), in))
		line_take(u, line);
	if (in)
		fclose(in);
}

/* Takes the first existing file, or all. Drop-ins of a later folder do not replace those of the same name: only their author would notice. */
static void files_take(struct unit *u, const char *root, const char *what, bool all)
{
	char pattern[PATH_MAX];
	glob_t found = {0};

	if (snprintf(pattern, sizeof(pattern), "%s%s", root, what) < (int)sizeof(pattern) && glob(pattern, GLOB_BRACE, NULL, &found) == 0)
		for (size_t i = 0; i < (all ? found.gl_pathc : 1); i++)
			file_take(u, found.gl_pathv[i]);
	globfree(&found);
}

void unit_read(struct unit *u, const char *root)
{
	*u = (struct unit){.user = ""};
	files_take(u, root, FOLDERS, false);
	files_take(u, root, FOLDERS ".d/*.conf", true);
	if (strcmp(u->user, "root") == 0 || strcmp(u->user, "0") == 0)
		u->user[0] = '\0';
}

bool unit_loads(const struct unit *u, const char *name)
{
	char word[256];

	return snprintf(word, sizeof(word), "\n%s\n", name) < (int)sizeof(word) && strstr(u->credentials, word);
}

/* --- what its user can read ------------------------------------------------------------------------------------------ */

/* The child process. Its exit status is an errno; 0: the file can be read, or that is unknown. */
static int errno_as(const struct passwd *user, const char *path)
{
	if (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid))
		return 0;
	return access(path, R_OK) ? errno : 0;
}

static int read_error(const struct unit *u, const char *path)
{
	const struct passwd *user = getpwnam(u->user);
	pid_t child = user && user->pw_uid != 0 ? fork() : -1;
	int status = 0;

	if (child == 0)
		_exit(errno_as(user, path));
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 0;
	return WEXITSTATUS(status);
}

static void file_warn(const struct unit *u, const struct conf *c, enum conf_key key, struct conf_report *report)
{
	const char *name = conf_file_name(c, key);
	char path[PATH_MAX];
	int error;

	if (!name || c->origin[key].bad || !conf_file_path(c, key, path) || access(path, R_OK))
		return;
	if (*name != '/' && unit_loads(u, name))
		return;
	error = read_error(u, path);
	if (error && *name == '/')
		conf_warn(c, key, report, "user %s, as which redlockd.service runs, cannot read %s: %s; " REMEDY, u->user, path, strerror(error));
	else if (error)
		conf_warn(c, key, report,
		          "user %s, as which redlockd.service runs, cannot read %s: %s; load it by a drop-in of the unit, LoadCredential=%s:%s, or " REMEDY,
		          u->user, path, strerror(error), name, path);
}

static void files_warn(const struct unit *u, const struct conf *c, const enum conf_key *keys, size_t n, struct conf_report *report)
{
	for (size_t i = 0; i < n; i++)
		file_warn(u, c, keys[i], report);
}

void unit_check(const struct unit *u, const struct conf *c, const char *config, struct conf_report *report)
{
	int error;

	if (!u->user[0] || geteuid() != 0)
		return;
	error = config ? read_error(u, config) : 0;
	if (error && report->out)
		fprintf(report->out, "%s: warning: user %s, as which redlockd.service runs, cannot read this file: %s; " REMEDY "\n", config, u->user,
		        strerror(error));
	files_warn(u, c, files_always, sizeof(files_always) / sizeof(*files_always), report);
	if (c->listen.tls_host)
		files_warn(u, c, files_of_listen, sizeof(files_of_listen) / sizeof(*files_of_listen), report);
	if (c->redis.tls.on)
		files_warn(u, c, files_of_redis, sizeof(files_of_redis) / sizeof(*files_of_redis), report);
}
