/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The password and the token. Each is in a file of its own; it must never be a value of the configuration, nor part of a message.
 */
#include "conf/conf.h"

#include "conf/file.h"
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

static int password_get(const struct conf *c, enum conf_key key, const char *name, bool again, char **ret_password)
{
	struct stat st;
	int fd, r;

	if (!name) {
		*ret_password = NULL;
		return 0;
	}
	fd = file_open(c, key, again ? O_NONBLOCK : 0);
	if (fd < 0)
		return -errno;
	r = again && (fstat(fd, &st) || !S_ISREG(st.st_mode)) ? -ENOTSUP : password_of(fd, ret_password);
	close(fd);
	return r;
}

int conf_password(const struct conf *c, char **ret_password)
{
	return password_get(c, KEY_REDIS_PASSWORD_FILE, c->redis.password_file, false, ret_password);
}

int conf_password_again(const struct conf *c, char **ret_password)
{
	return password_get(c, KEY_REDIS_PASSWORD_FILE, c->redis.password_file, true, ret_password);
}

int conf_sentinel_password(const struct conf *c, char **ret_password)
{
	return password_get(c, KEY_REDIS_SENTINEL_PASSWORD_FILE, c->redis.sentinel_password_file, true, ret_password);
}

int conf_token(const struct conf *c, char **ret_token)
{
	return password_get(c, KEY_HTTP_TOKEN_FILE, c->http.token_file, true, ret_token);
}

int conf_metrics_token(const struct conf *c, char **ret_token)
{
	return password_get(c, KEY_HTTP_METRICS_TOKEN_FILE, c->http.metrics_token_file, true, ret_token);
}

int conf_api_token(const struct conf *c, char **ret_token)
{
	return password_get(c, KEY_API_TOKEN_FILE, c->api.token_file, true, ret_token);
}

/* A pipe is not opened: its writer would take that for the reader that it waits for. */
static bool password_can_be_tried(const char *path)
{
	struct stat st;

	return stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

bool conf_password_may_be_read_again(const struct conf *c)
{
	char path[PATH_MAX];

	return c->store != STORE_REDIS || !c->redis.password_file || !conf_file_path(c, KEY_REDIS_PASSWORD_FILE, path) || password_can_be_tried(path);
}

static int password_complain(const struct conf *c, enum conf_key key, const char *path, int r, struct conf_report *report)
{
	const struct conf_origin *o = &c->origin[key];
	const char *where = "";

	if (r == -ENOENT && *conf_file_name(c, key) != '/')
		where = getenv("CREDENTIALS_DIRECTORY") ? ", nor is it in $CREDENTIALS_DIRECTORY" : "; $CREDENTIALS_DIRECTORY is not set";
	if (r == -ENOTSUP)
		report_error(report, o->source, (struct source_place){o->line, o->column}, "the password cannot be read: %s is no regular file", path);
	else if (r == -EINVAL)
		report_error(report, o->source, (struct source_place){o->line, o->column}, "%s is no password file: it holds one line of at most %d bytes",
		             path, PASSWORD_MAX);
	else
		report_error(report, o->source, (struct source_place){o->line, o->column}, "the password cannot be read: %s: %s%s", path, strerror(-r), where);
	return -1;
}

static int password_check(const struct conf *c, enum conf_key key, struct conf_report *report)
{
	const char *name = conf_file_name(c, key);
	char path[PATH_MAX], *password = NULL;
	int r;

	if (!name || c->origin[key].bad)
		return 0;
	if (!conf_file_path(c, key, path) || (key == KEY_REDIS_PASSWORD_FILE && !password_can_be_tried(path)))
		return 0;
	r = password_get(c, key, name, true, &password);
	if (password)
		explicit_bzero(password, strlen(password));
	free(password);
	return r == 0 ? 0 : password_complain(c, key, path, r, report);
}

int conf_password_check(const struct conf *c, struct conf_report *report)
{
	int r = password_check(c, KEY_REDIS_PASSWORD_FILE, report);

	return password_check(c, KEY_REDIS_SENTINEL_PASSWORD_FILE, report) || r ? -1 : 0;
}
