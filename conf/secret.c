/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The password. It is in a file of its own; it must never be a value of the configuration, nor part of a message.
 */
#include "conf/conf.h"

#include "conf/report.h"
#include "conf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSWORD_MAX 4096

/* Joins folder[0..n), "/" and name; false if the path is too long. */
static bool path_join(const char *folder, size_t n, const char *name, char ret_path[PATH_MAX])
{
	int length = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, folder, name);

	errno = ENAMETOOLONG; /* if it is too long */
	return length > 0 && length < PATH_MAX;
}

/* Something is there, even if it cannot be looked at. */
static bool is_there(const char *path)
{
	struct stat st;

	return !stat(path, &st) || errno != ENOENT;
}

/* A relative name is looked up in $CREDENTIALS_DIRECTORY, then beside the configuration file, then in the working directory. */
static bool password_path(const struct conf *c, char ret_path[PATH_MAX])
{
	const char *name = c->redis.password_file, *credentials = getenv("CREDENTIALS_DIRECTORY");
	const struct conf_source *source = c->origin[KEY_REDIS_PASSWORD_FILE].source;
	const char *slash = source ? strrchr(source->label, '/') : NULL;

	if (*name != '/' && credentials && path_join(credentials, strlen(credentials), name, ret_path) && is_there(ret_path))
		return true;
	if (*name != '/' && slash)
		return path_join(source->label, (size_t)(slash - source->label), name, ret_path);
	errno = ENAMETOOLONG; /* if it is too long */
	return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX;
}

static int password_open(const struct conf *c, int how)
{
	char path[PATH_MAX];

	return password_path(c, path) ? open(path, how) : -1;
}

static ssize_t password_read(int fd, char *text, size_t size)
{
	ssize_t n = 0, r = 1;

	while (r && (size_t)n < size) {
		r = read(fd, text + n, size - (size_t)n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		n += r;
	}
	return n;
}

/* Takes one line without its end. */
static int password_take(const char *text, size_t n, char **ret_password)
{
	size_t length = strcspn(text, "\r\n");
	size_t rest = length + strspn(text + length, "\r\n");

	if (!length || n > PASSWORD_MAX || rest != n)
		return -EINVAL;
	*ret_password = conf_strndup(text, length);
	return 0;
}

static int password_of(int fd, char **ret_password)
{
	char text[PASSWORD_MAX + 2] = "";
	ssize_t n = password_read(fd, text, sizeof(text) - 1);
	int r;

	r = n < 0 ? (int)n : password_take(text, (size_t)n, ret_password);
	explicit_bzero(text, sizeof(text));
	return r;
}

static int password_get(const struct conf *c, bool again, char **ret_password)
{
	struct stat st;
	int fd, r;

	if (!c->redis.password_file) {
		*ret_password = NULL;
		return 0;
	}
	fd = password_open(c, O_RDONLY | O_CLOEXEC | (again ? O_NONBLOCK : 0));
	if (fd < 0)
		return -errno;
	r = again && (fstat(fd, &st) || !S_ISREG(st.st_mode)) ? -ENOTSUP : password_of(fd, ret_password);
	close(fd);
	return r;
}

int conf_password(const struct conf *c, char **ret_password)
{
	return password_get(c, false, ret_password);
}

int conf_password_again(const struct conf *c, char **ret_password)
{
	return password_get(c, true, ret_password);
}

/* A pipe is not opened: its writer would take that for the reader that it waits for. */
static bool password_can_be_tried(const char *path)
{
	struct stat st;

	return stat(path, &st) || S_ISREG(st.st_mode);
}

static int password_complain(const struct conf *c, const char *path, int r, struct conf_report *report)
{
	const struct conf_origin *o = &c->origin[KEY_REDIS_PASSWORD_FILE];
	const char *where = "";

	if (r == -ENOENT && *c->redis.password_file != '/')
		where = getenv("CREDENTIALS_DIRECTORY") ? ", nor is it in $CREDENTIALS_DIRECTORY" : "; $CREDENTIALS_DIRECTORY is not set";
	if (r == -EINVAL)
		report_error(report, o->source, (struct source_place){o->line, o->column}, "%s is no password file: it holds one line of at most %d bytes",
		             path, PASSWORD_MAX);
	else
		report_error(report, o->source, (struct source_place){o->line, o->column}, "the password cannot be read: %s: %s%s", path, strerror(-r), where);
	return -1;
}

int conf_password_check(const struct conf *c, struct conf_report *report)
{
	char path[PATH_MAX], *password = NULL;
	int r;

	if (c->store != STORE_REDIS || !c->redis.password_file || c->origin[KEY_REDIS_PASSWORD_FILE].bad)
		return 0;
	if (!password_path(c, path) || !password_can_be_tried(path))
		return 0;
	r = conf_password_again(c, &password);
	if (password)
		explicit_bzero(password, strlen(password));
	free(password);
	return r == 0 ? 0 : password_complain(c, path, r, report);
}
